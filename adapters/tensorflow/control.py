"""What steers TensorFlow's graphs and devices: run here as it is written, data stays where it is.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from collshim.arrays import is_array
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.distribute.devices import canonical
from collshim.tensorflow.distribute.values import DistributedValues
from collshim.tensorflow.indexed_slices import IndexedSlices


@contextmanager
def device(device_name: Any) -> Iterator[None]:
    """A block on a device: the name is checked, and nothing moves.

    Raises:
        ValueError: no device has such a name.
    """
    if isinstance(device_name, str):
        canonical(device_name)
    yield


@contextmanager
def init_scope() -> Iterator[None]:
    """A block outside of every graph: there is none."""
    yield


@contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """A block after the operations named, which have run already."""
    yield


def cond(pred: Any, true_fn: Callable[[], Any], false_fn: Callable[[], Any], name: str | None = None) -> Any:
    """What one of the functions returns: the first where ``pred`` holds."""
    return true_fn() if bool(pred) else false_fn()


def while_loop(cond: Callable[..., Any], body: Callable[..., Any], loop_vars: Sequence[Any]) -> Any:
    """``loop_vars`` after as many calls of ``body`` as ``cond`` wants."""
    values: Any = list(loop_vars)
    while bool(cond(*values)):
        found = body(*values)
        values = list(found) if isinstance(found, list | tuple) else [found]
    return type(loop_vars)(values)  # type: ignore[call-arg]


def group(*inputs: Any, name: str | None = None) -> None:
    """None: what is given has run already."""


def no_op(name: str | None = None) -> None:
    """None."""


def executing_eagerly() -> bool:
    """True: there are no graphs here."""
    return True


def is_tensor(x: Any) -> bool:
    """Whether ``x`` is a tensor, a variable, slices or a distributed value."""
    return isinstance(x, torch.Tensor | IndexedSlices | DistributedValues) or hasattr(x, "_as_tensor")


def get_static_value(tensor: Any, partial: bool = False) -> Any:
    """The values as a NumPy array; None for what is no tensor."""
    return convert_to_tensor(tensor).numpy() if is_array(tensor) else None
