"""TensorFlow's functions that control graphs and devices: here code runs as written, and data does not move.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

import torch

from collshim.arrays import is_array
from collshim.errors import ArgumentTypeError
from collshim.tensorflow.composites import RaggedTensor, SparseTensor
from collshim.tensorflow.config.logical import LogicalDevice
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.distribute.devices import named
from collshim.tensorflow.indexed_slices import IndexedSlices


@contextmanager
def device(device_name: Any) -> Iterator[None]:
    """Name the block's device, which variables that are made in it have; nothing moves.

    Raises:
        ValueError: no device has such a name.
    """
    if not isinstance(device_name, str | LogicalDevice):
        yield
        return
    with named(device_name):
        yield


@contextmanager
def init_scope() -> Iterator[None]:
    """Do nothing: there are no graphs to leave."""
    yield


@contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """Do nothing: the operations have already run."""
    yield


def cond(pred: Any, true_fn: Any = None, false_fn: Any = None, name: str | None = None) -> Any:
    """Return the result of ``true_fn()`` if ``pred`` holds, else of ``false_fn()``.

    Raises:
        TypeError: one of them cannot be called.
    """
    for role, function in (("true_fn", true_fn), ("false_fn", false_fn)):
        if not callable(function):
            raise ArgumentTypeError(f"'{role}' must be callable.")
    return true_fn() if bool(pred) else false_fn()


def while_loop(
    cond: Callable[..., Any],
    body: Callable[..., Any],
    loop_vars: Sequence[Any],
    shape_invariants: Any = None,
    parallel_iterations: int = 10,
    back_prop: bool = True,
    swap_memory: bool = False,
    maximum_iterations: Any = None,
    name: str | None = None,
) -> Any:
    """Call ``body`` on ``loop_vars`` while ``cond`` holds, and return them; ``maximum_iterations`` times at most."""
    values: Any = list(loop_vars)
    rounds = count() if maximum_iterations is None else range(int(maximum_iterations))
    for _ in rounds:
        if not bool(cond(*values)):
            break
        found = body(*values)
        values = list(found) if isinstance(found, list | tuple) else [found]
    return type(loop_vars)(values)  # type: ignore[call-arg]


def group(*inputs: Any, name: str | None = None) -> None:
    """Do nothing: the inputs have already run."""


def no_op(name: str | None = None) -> None:
    """Do nothing."""


def executing_eagerly() -> bool:
    """Return True: there are no graphs here."""
    return True


def is_tensor(x: Any) -> bool:
    """Check whether ``x`` is a tensor, also a ragged or sparse one, a variable or slices."""
    return isinstance(x, torch.Tensor | IndexedSlices | RaggedTensor | SparseTensor) or hasattr(x, "_as_tensor")


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """Return the values as a NumPy array; None if ``tensor`` is not an array."""
    return convert_to_tensor(tensor).numpy() if is_array(tensor) else None
