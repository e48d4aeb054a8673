"""The constructors that the documented examples of ``flow.comm`` use: torch's, with OneFlow's devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

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
    """A tensor of zeros, as ``torch.zeros`` makes it; ``size`` is given as integers or as one sequence."""
    return torch.zeros(_shape(size), dtype=dtype, device=own_device(device), requires_grad=requires_grad)


def ones(
    *size: int | Sequence[int],
    dtype: torch.dtype | None = None,
    device: Device = None,
    requires_grad: bool = False,
) -> Tensor:
    """A tensor of ones, as ``torch.ones`` makes it; ``size`` is given as integers or as one sequence."""
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


def _shape(size: tuple[int | Sequence[int], ...]) -> Sequence[int]:
    if len(size) == 1 and isinstance(size[0], Sequence):
        return size[0]
    return [length for length in size if isinstance(length, int)]
