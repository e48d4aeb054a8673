"""The constructors that the documented examples of ``flow.comm`` use: torch's, with OneFlow's devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from collshim.errors import ArgumentError, ArgumentTypeError, also
from collshim.oneflow.env import get_local_rank

Device: TypeAlias = "str | torch.device | None"


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
    return torch.tensor(data, dtype=dtype, device=place, requires_grad=requires_grad, pin_memory=pin_memory)


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
    return torch.zeros(_shape(size), dtype=dtype, device=own_device(device), requires_grad=requires_grad)


def ones(
    *size: int | Sequence[int],
    dtype: torch.dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of ones, as ``torch.ones`` makes it; see ``zeros``."""
    return torch.ones(_shape(size), dtype=dtype, device=own_device(device), requires_grad=requires_grad)


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
    return torch.arange(first, last, step, dtype=dtype, device=place, requires_grad=requires_grad)


def own_device(device: Device) -> torch.device | None:
    """``device``; a plain ``"cuda"`` is this rank's GPU: number ``get_local_rank()``, shared where they are few."""
    if device is None:
        return None
    place = torch.device(device)
    if str(place) != "cuda" or not torch.cuda.is_available():
        return place
    return torch.device("cuda", get_local_rank() % torch.cuda.device_count())


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
