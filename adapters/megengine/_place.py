"""MegEngine's device names ("xpu0:1", "gpux", "cpu0"), and the devices that they mean for a result."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from collshim.megengine.device import parsed, torch_device


def placing(device: str | None) -> Callable[[Tensor], Tensor]:
    """Validate a device name, and return a function that moves a result to this device.

    ``cpu``, ``gpu``, ``cuda`` and ``rocm`` name torch's devices; ``xpu`` is the kind of device that the result is on,
    and ``x`` is its number. The stream after the colon is accepted and ignored: torch's current stream is used.

    Raises:
        RuntimeError: there is no such device, and no other device replaces it (``COLLSHIM_DEVICE``).
    """
    if device is None:
        return _unmoved
    kind, number, _ = parsed(device)
    if kind == "xpu":
        return lambda result: result.to(_like(result.device.type, number))
    target = torch_device(device)
    return lambda result: result.to(target)


def _like(kind: str, number: int | None) -> torch.device:
    return torch.device(kind) if number is None or kind == "cpu" else torch.device(kind, number)


def _unmoved(result: Tensor) -> Tensor:
    return result
