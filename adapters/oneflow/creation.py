"""Constructors with OneFlow's devices; those that differ from torch's in more than that are written out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import update_wrapper
from types import BuiltinFunctionType, FunctionType
from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentError, ArgumentTypeError, also
from collshim.oneflow.device_names import Device, own_device
from collshim.oneflow.framework.tensor import Tensor, adopt, made, placed


def tensor(
    data: Any,
    *,
    dtype: torch.dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor with a copy of ``data``, as ``torch.tensor`` makes it."""
    place = own_device(device)
    if isinstance(data, torch.Tensor):
        copied = data.detach().to(place, dtype, copy=True)
        return made(copied.requires_grad_(requires_grad))
    return made(torch.tensor(data, dtype=dtype, device=place, requires_grad=requires_grad, pin_memory=pin_memory))


def zeros(
    *size: int | Sequence[int],
    dtype: torch.dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of zeros, as ``torch.zeros`` makes it; ``size`` is given as integers, or as one list or tuple of them.

    Raises:
        TypeError: ``size`` is neither; a lone NumPy integer is refused too, as in OneFlow.
        AssertionError: several sizes of which one is no integer, or none at all.
    """
    return made(torch.zeros(_shape(size), dtype=dtype, device=own_device(device), requires_grad=requires_grad))


def ones(
    *size: int | Sequence[int],
    dtype: torch.dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of ones, as ``torch.ones`` makes it; see ``zeros``."""
    return made(torch.ones(_shape(size), dtype=dtype, device=own_device(device), requires_grad=requires_grad))


def arange(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    dtype: torch.dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """The numbers from ``start`` to before ``end``, as ``torch.arange``; one argument is ``end``."""
    first, last = (0, start) if end is None else (start, end)
    place = own_device(device)
    return made(torch.arange(first, last, step, dtype=dtype, device=place, requires_grad=requires_grad))


def Generator(device: Device = None) -> torch.Generator:
    """A generator of random numbers, of torch's class."""
    return torch.Generator(own_device("cpu" if device in (None, "auto") else device) or "cpu")


def dtypes() -> list[torch.dtype]:
    """The dtypes of tensors."""
    names = ("bool", "float32", "float64", "float16", "int8", "int32", "int64", "uint8", "bfloat16")
    return [getattr(torch, name) for name in names]


def oneflows(name: str, value: Any) -> Any:
    """``value`` of the module ``torch`` as ``oneflow`` has it: functions take its devices and give its tensors."""
    if not isinstance(value, FunctionType | BuiltinFunctionType | type(torch.FloatTensor)):
        return value

    theirs: Any = value

    def function(*args: Any, **kwargs: Any) -> Any:
        return adopt(theirs(*args, **placed(kwargs)))

    update_wrapper(function, theirs, assigned=("__name__", "__doc__"), updated=())
    function.__module__, function.__qualname__ = "collshim.oneflow", name
    return function


def _shape(size: tuple[Any, ...]) -> list[int]:
    """The lengths that were given, in one of the two forms."""
    if len(size) != 1:
        return _several_lengths(size)
    lengths = size[0] if isinstance(size[0], list | tuple) else size
    wholes = int if lengths is size else int | np.integer
    if not all(isinstance(length, wholes) for length in lengths):
        raise ArgumentTypeError(
            f"size is {size[0]!r}, should be ints, or one list or tuple of them: constant(): argument 'shape' must be "
            f"shape, not {type(size)}"
        )
    return [int(length) for length in lengths]


def _several_lengths(size: tuple[Any, ...]) -> list[int]:
    if not size or not all(isinstance(length, int | np.integer) for length in size):
        raise also(ArgumentError, AssertionError)(
            f"size is {size!r}, should be ints, or one list or tuple of them: shape should be specified by tuple of "
            "int size"
        )
    return [int(length) for length in size]
