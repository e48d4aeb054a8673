"""``tf.identity`` and ``tf.function``, which runs functions as they are written."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from types import MethodType
from typing import Any, TypeVar, cast, overload

import numpy as np

from collshim.errors import ArgumentValueError
from collshim.tensorflow import structures
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.distribute import context, stack
from collshim.tensorflow.distribute.leaves import leaf_of
from collshim.tensorflow.distribute.sparse import copy_leaf
from collshim.tensorflow.distribute.values import Components

F = TypeVar("F", bound=Callable[..., Any])


def identity(input: Any, name: str | None = None) -> Any:
    """Return a copy of an array, of the same type; numbers become tensors; distributed values keep their form.

    Raises:
        ValueError: one of several replicas passes a distributed value, or the input is not a tensor.
    """
    if isinstance(input, Components):
        _refuse_in_replica(input)
        return type(input)(identity(value) for value in input.values)
    if isinstance(input, list | tuple) or hasattr(input, "_as_tensor"):
        return convert_to_tensor(input)
    return copy_leaf(leaf_of(input, 0))


@overload
def function(func: F, *hints: Any, **more: Any) -> F: ...


@overload
def function(func: None = None, *hints: Any, **more: Any) -> Callable[[F], F]: ...


def function(
    func: Any = None,
    input_signature: Any = None,
    autograph: bool = True,
    jit_compile: bool | None = None,
    reduce_retracing: bool = False,
    experimental_implements: str | None = None,
    experimental_autograph_options: Any = None,
    experimental_attributes: Any = None,
    experimental_relax_shapes: bool | None = None,
    experimental_compile: bool | None = None,
    experimental_follow_type_hints: bool | None = None,
) -> Any:
    """Wrap ``func``, with or without arguments to the decorator: nothing is traced, and the hints have no effect.

    NumPy arrays are passed to it as tensors, and arrays and numbers in its result become tensors.

    If a replica calls such a function, it must not synchronize with others inside: that is a RuntimeError, as in
    TensorFlow. The function passed to ``Strategy.run`` may be one. ``python_function`` is ``func``.
    """
    return _decorate if func is None else _decorate(func)


def _refuse_in_replica(value: Components) -> None:
    replica = context.get_replica_context()
    if replica is not None and replica.num_replicas_in_sync > 1:
        raise ArgumentValueError(
            f"Flattening a {type(value).__name__} to components is not supported in replica context."
        )


class Function:
    """A function, or a method, wrapped by ``tf.function``; a call calls it.

    Attributes:
        python_function: the wrapped function.
    """

    def __init__(self, python_function: Callable[..., Any]) -> None:
        update_wrapper(self, python_function)
        self.python_function = python_function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: D102
        given = [_with(_array_as_tensor, one) for one in args]
        named = {name: _with(_array_as_tensor, one) for name, one in kwargs.items()}
        with stack.in_function():
            return _with(_number_as_tensor, self.python_function(*given, **named))

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else Function(MethodType(self.python_function, instance))


def _with(change: Callable[[Any], Any], structure: Any) -> Any:
    """Apply ``change`` to each leaf; return the same structure object if no leaf changes."""
    leaves = structures.flatten(structure)
    found = [change(leaf) for leaf in leaves]
    if all(new is old for new, old in zip(found, leaves, strict=True)):
        return structure
    return structures.pack_sequence_as(structure, found)


def _array_as_tensor(value: Any) -> Any:
    return convert_to_tensor(value) if isinstance(value, np.ndarray) else value


def _number_as_tensor(value: Any) -> Any:
    return convert_to_tensor(value) if isinstance(value, int | float | complex | np.ndarray | np.generic) else value


def _decorate(func: F) -> F:
    return cast(F, Function(func))
