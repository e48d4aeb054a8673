"""OneFlow's devices: ``flow.device``, and the device of this rank that a name stands for.

A bare ``"cuda"`` is the GPU whose number is this rank's among those of its machine, as in OneFlow 0.9.0. Where there is
no GPU, names of GPUs stand for the CPU by collshim's switch alone: see ``collshim.adapting.devices``.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from collshim.adapting import devices
from collshim.oneflow.env import get_local_rank

Device: TypeAlias = "str | int | torch.device | None"


def own_device(name: Device) -> torch.device | None:
    """The device that ``name`` stands for on this rank; a number is a GPU's, None stays None.

    Raises:
        RuntimeError: no such device, or a GPU that is not there.
    """
    if name is None:
        return None
    place = devices.resolve(f"cuda:{name}" if isinstance(name, int) else name, RuntimeError)
    if str(place) != "cuda":
        return place
    return torch.device("cuda", get_local_rank() % torch.cuda.device_count())


def is_device(value: object) -> bool:
    """Whether an argument that may be a device or a dtype is a device's name, number or object."""
    return isinstance(value, str | int | torch.device) and not isinstance(value, bool)


class _DeviceType(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, torch.device)


class device(metaclass=_DeviceType):
    """``flow.device("cuda", 1)``: torch's device of that name, or the CPU in its place; what tensors' ``device`` gives.

    Raises:
        RuntimeError: no such device, or a GPU that is not there.
    """

    def __new__(cls, type: Any, index: int | None = None) -> Any:
        """The device, of torch's class."""
        return own_device(type if index is None else f"{type}:{index}")
