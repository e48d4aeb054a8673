"""MegEngine's device names ("xpu0:1", "gpux", "cpu0") and where they put a result."""

from __future__ import annotations

import re
from collections.abc import Callable

import torch
from torch import Tensor

from collshim.errors import ArgumentValueError, also

_NAME = re.compile(r"(xpu|gpu|cuda|rocm|cpu)(x|\d+)(:\d+)?")


def placing(device: str | None) -> Callable[[Tensor], Tensor]:
    """What moves a result to ``device``; the name is validated now.

    ``cpu``, ``gpu``, ``cuda`` and ``rocm`` name torch's devices; ``xpu`` is whatever kind of device the result is on,
    ``x`` whatever number. The stream after the colon is accepted and left alone: torch's current stream is used.

    Raises:
        RuntimeError: no such device.
    """
    if device is None:
        return _unmoved
    match = _NAME.fullmatch(device) if isinstance(device, str) else None
    if match is None:
        raise also(ArgumentValueError, RuntimeError)(f"invalid comp node id: {device}")
    kind, number = match[1], match[2]
    if kind == "xpu":
        return lambda result: result.to(_target(result.device.type, number))
    target = _target("cpu" if kind == "cpu" else "cuda", number)
    if target.type == "cuda" and (target.index or 0) >= torch.cuda.device_count():
        raise also(ArgumentValueError, RuntimeError)(
            f"invalid comp node id: {device}: there are {torch.cuda.device_count()} GPUs"
        )
    return lambda result: result.to(target)


def _target(kind: str, number: str) -> torch.device:
    return torch.device(kind) if number == "x" or kind == "cpu" else torch.device(kind, int(number))


def _unmoved(result: Tensor) -> Tensor:
    return result
