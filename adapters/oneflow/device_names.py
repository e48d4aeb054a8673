"""OneFlow's devices: ``flow.device``, and the device that a name means on this rank.

``"cuda"`` without a number is the GPU whose number is this rank's on its machine, as in OneFlow 0.9.0. If there is no
GPU, names of GPUs stand for the CPU only with collshim's switch: see ``collshim.adapting.devices``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from collshim.adapting import devices
from collshim.oneflow.env import get_local_rank

Device: TypeAlias = "str | int | torch.device | None"


def own_device(name: Device) -> torch.device | None:
    """Return the device that a name means on this rank; a number is a GPU's, and None stays None.

    Raises:
        RuntimeError: there is no such device, or no GPU is available.
    """
    if name is None:
        return None
    place = devices.resolve(f"cuda:{name}" if isinstance(name, int) else name, RuntimeError)
    if str(place) != "cuda":
        return place
    return torch.device("cuda", get_local_rank() % torch.cuda.device_count())


def is_device(value: object) -> bool:
    """Return whether an argument, which may be a device or a dtype, is a device's name, number or object."""
    return isinstance(value, str | int | torch.device) and not isinstance(value, bool)


class _DeviceType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.device)


class device(metaclass=_DeviceType):
    """``flow.device("cuda", 1)``: torch's device of that name, or the CPU for it; the type of ``tensor.device``.

    Raises:
        RuntimeError: there is no such device, or no GPU is available.
    """

    def __new__(cls, type: Any, index: int | None = None) -> Any:
        """Return the device, of torch's class."""
        return own_device(type if index is None else f"{type}:{index}")
