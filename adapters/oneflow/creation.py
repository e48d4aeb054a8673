"""Constructors with OneFlow's devices; those that also differ from torch's in other ways are defined here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import update_wrapper
from types import BuiltinFunctionType, FunctionType
from typing import Any, cast

import numpy as np
import torch

from collshim import world
from collshim.errors import ArgumentError, ArgumentTypeError, also
from collshim.oneflow.device_names import Device, own_device
from collshim.oneflow.framework.calls import is_global
from collshim.oneflow.framework.global_tensor import spread, to_global
from collshim.oneflow.framework.layouts import PARTIAL
from collshim.oneflow.framework.tensor import Tensor, adopt, adopt_tensor, resolve_device


def tensor(
    data: Any,
    *,
    dtype: torch.dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
    placement: Any = None,
    sbp: Any = None,
    pin_memory: bool = False,
) -> Tensor:
    """Return a tensor with a copy of ``data``, as ``torch.tensor`` does.

    If ``data`` is a tensor and there is a placement, it is converted as ``to_global`` does; without, a global tensor
    becomes this rank's part.

    Raises:
        AssertionError: only one of ``placement`` and ``sbp`` is passed, or ``device`` is passed with them. The other
            constructors raise this too.
    """
    place = own_device(device)
    if isinstance(data, torch.Tensor):
        becomes_local = placement is None and sbp is None and is_global(data)
        source: Any = cast(Any, data).to_local() if becomes_local else data
        made: Any = source.detach().to(place, dtype, copy=True)
        if None not in (placement, sbp) and device is None:
            made = to_global(made, placement, sbp)
        elif placement is not None or sbp is not None:
            made = spread(made, placement, sbp, device)  # raises an error
        return adopt_tensor(made.requires_grad_(requires_grad))
    new = torch.tensor(data, dtype=dtype, device=place, requires_grad=requires_grad, pin_memory=pin_memory)
    return _spread(new, placement, sbp, device)


def zeros(
    *size: int | Sequence[int],
    dtype: torch.dtype | None = None,
    device: Device = None,
    placement: Any = None,
    sbp: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of zeros, as ``torch.zeros`` does; ``size`` is several integers, or a list or tuple of integers.

    Raises:
        TypeError: ``size`` is anything else; a single NumPy integer is refused too, as in OneFlow.
        AssertionError: ``size`` is empty, or one of several sizes is not an integer.
    """
    made = torch.zeros(_shape(size), dtype=dtype, device=own_device(device), requires_grad=requires_grad)
    return _spread(made, placement, sbp, device)


def ones(
    *size: int | Sequence[int],
    dtype: torch.dtype | None = None,
    device: Device = None,
    placement: Any = None,
    sbp: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return a tensor of ones, as ``torch.ones`` does; see ``zeros``."""
    made = torch.ones(_shape(size), dtype=dtype, device=own_device(device), requires_grad=requires_grad)
    return _spread(made, placement, sbp, device)


def arange(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    dtype: torch.dtype | None = None,
    device: Device = None,
    placement: Any = None,
    sbp: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Return the numbers from ``start`` up to, but not including, ``end``; a single argument is ``end``."""
    first, last = (0, start) if end is None else (start, end)
    place = own_device(device)
    made = torch.arange(first, last, step, dtype=dtype, device=place, requires_grad=requires_grad)
    return _spread(made, placement, sbp, device)


def Generator(device: Device = None) -> torch.Generator:
    """Return a random number generator of torch's class."""
    return torch.Generator(own_device("cpu" if device in (None, "auto") else device) or "cpu")


def dtypes() -> list[torch.dtype]:
    """Return the dtypes that tensors can have."""
    names = ("bool", "float32", "float64", "float16", "int8", "int32", "int64", "uint8", "bfloat16")
    return [getattr(torch, name) for name in names]


def adapt(name: str, value: Any) -> Any:
    """Adapt a function of ``torch`` to ``oneflow``, with its devices and tensors; other values are unchanged."""
    if not isinstance(value, FunctionType | BuiltinFunctionType | type(torch.FloatTensor)):
        return value

    theirs: Any = value

    def function(*args: Any, **kwargs: Any) -> Any:
        placement, sbp = kwargs.pop("placement", None), kwargs.pop("sbp", None)
        if name in _RANDOM and PARTIAL in str(sbp):
            text = f"{name}: sbp is {sbp}: random source op only support broadcast or split"
            raise also(ArgumentError, RuntimeError)(text + world.place())
        made = adopt(theirs(*args, **resolve_device(kwargs)))
        return made if placement is None and sbp is None else spread(made, placement, sbp, kwargs.get("device"))

    update_wrapper(function, theirs, assigned=("__name__", "__doc__"), updated=())
    function.__module__, function.__qualname__ = "collshim.oneflow", name
    return function


_RANDOM = {"rand", "randn", "randint", "randperm", "normal", "bernoulli"}


def _spread(made: torch.Tensor, placement: Any, sbp: Any, device: Device) -> Tensor:
    """Return a new tensor as a local one, or as a global one if there are ``placement`` and ``sbp``."""
    return adopt_tensor(made) if placement is None and sbp is None else spread(made, placement, sbp, device)


def _shape(size: tuple[Any, ...]) -> list[int]:
    """Return the shape from ``size`` in either form: several integers, or one list or tuple."""
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
