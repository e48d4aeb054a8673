"""``tf.identity`` and ``tf.function``, which runs functions as they are written."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial, update_wrapper
from types import MethodType
from typing import Any, TypeVar, cast, overload
from weakref import WeakKeyDictionary

import numpy as np
import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow import string_functions, structures
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.distribute import context, stack
from collshim.tensorflow.distribute.leaves import leaf_of
from collshim.tensorflow.distribute.sparse import copy_leaf
from collshim.tensorflow.distribute.values import Components, Mirrored
from collshim.tensorflow.errors import end_of_sequence
from collshim.tensorflow.function_variables import Creations
from collshim.tensorflow.gradient_tape import component_here
from collshim.tensorflow.input_signatures import bound
from collshim.tensorflow.specs import TypeSpec
from collshim.tensorflow.string_functions import or_of_strings

F = TypeVar("F", bound=Callable[..., Any])


@or_of_strings(string_functions.identity)
def identity(input: Any, name: str | None = None) -> Any:
    """Return a copy of a tensor; numbers and NumPy's arrays become tensors; distributed values keep their form.

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

    NumPy arrays are passed to ``func`` as tensors, and so are all values that ``input_signature`` describes. Variables,
    arrays and numbers in its result become tensors. The end of an iterator raises an ``OutOfRangeError``.

    If a replica calls such a function, it must not synchronize with others inside: that is a RuntimeError, as in
    TensorFlow. The function passed to ``Strategy.run`` may be one. ``python_function`` is ``func``.
    """
    specs = None if input_signature is None else tuple(input_signature)
    return partial(_decorate, specs) if func is None else _decorate(specs, func)


def _refuse_in_replica(value: Components) -> None:
    replica = context.get_replica_context()
    if replica is not None and replica.num_replicas_in_sync > 1:
        raise ArgumentValueError(
            f"Flattening a {type(value).__name__} to components is not supported in replica context."
        )


class Function:
    """A function or a method, wrapped by ``tf.function``; calling this object calls it.

    Attributes:
        python_function: the wrapped function.
        input_signature: the descriptions of its arguments, or None.
    """

    def __init__(
        self,
        python_function: Callable[..., Any],
        input_signature: tuple[Any, ...] | None = None,
        creations: Creations | None = None,
    ) -> None:
        update_wrapper(self, python_function)
        self.python_function, self.input_signature = python_function, input_signature
        self._creations = creations or Creations()
        self._of_instances: WeakKeyDictionary[Any, Creations] = WeakKeyDictionary()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function, in which a replica must not synchronize.

        Raises:
            TypeError: the arguments do not match the ``input_signature``.
            ValueError: the function creates a variable that it did not create in its first call.
        """
        with stack.in_function():
            return self.run_in_replica(*args, **kwargs)

    def run_in_replica(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function on behalf of ``Strategy.run``: replicas may synchronize in it."""
        if self.input_signature is not None:
            args, kwargs = bound(self.python_function, self.input_signature, args, kwargs), {}
        given = [_with(_array_as_tensor, one) for one in args]
        named = {name: _with(_array_as_tensor, one) for name, one in kwargs.items()}
        try:
            with self._creations.watched():
                return _with(_result_as_tensor, self.python_function(*given, **named))
        except StopIteration as error:
            raise end_of_sequence() from error

    def get_concrete_function(self, *args: Any, **kwargs: Any) -> Callable[..., Any]:
        """Return this function with those arguments fixed that are neither tensors nor descriptions of tensors."""
        if not any(isinstance(one, TypeSpec | torch.Tensor) for one in (*args, *kwargs.values())):
            return Function(partial(self.python_function, *args, **kwargs), self.input_signature)

        def concrete(*given: Any, **named: Any) -> Any:
            tensors = iter(given)
            whole = [next(tensors, one) if isinstance(one, TypeSpec | torch.Tensor) else one for one in args]
            return self.python_function(*whole, *tensors, **{**kwargs, **named})

        return Function(concrete)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        if instance is None:
            return self
        creations = self._of_instances.setdefault(instance, Creations()) if isinstance(instance, Hashable) else None
        return Function(MethodType(self.python_function, instance), self.input_signature, creations)


def _with(change: Callable[[Any], Any], structure: Any) -> Any:
    """Apply ``change`` to each leaf; return the same structure object if no leaf changes."""
    leaves = structures.flatten(structure)
    found = [change(leaf) for leaf in leaves]
    if all(new is old for new, old in zip(found, leaves, strict=True)):
        return structure
    return structures.pack_sequence_as(structure, found)


def _array_as_tensor(value: Any) -> Any:
    return convert_to_tensor(value) if isinstance(value, np.ndarray) else value


def _result_as_tensor(value: Any) -> Any:
    if isinstance(value, Mirrored):
        value = component_here(value)
    kinds = int | float | complex | str | bytes | np.ndarray | np.generic
    return convert_to_tensor(value) if isinstance(value, kinds) or hasattr(value, "_as_tensor") else value


def _decorate(input_signature: tuple[Any, ...] | None, func: F) -> F:
    return cast(F, Function(func, input_signature))
