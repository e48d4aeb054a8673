"""``oneflow.cuda``: torch's GPUs, or if CPU memory stands for GPUs, one pretended GPU per rank of this machine.

Without a GPU, and without the switch of ``collshim.adapting.devices``, ``device_count()`` is 0.
"""

from __future__ import annotations

import threading

import torch
from torch import cuda

from collshim.adapting import devices, fall_through
from collshim.oneflow.creation import adapt
from collshim.oneflow.device_names import Device, own_device
from collshim.oneflow.env import get_local_rank


class _Pretended(threading.local):
    """The number passed to ``set_device`` if there is no GPU; separate for each rank that is a thread."""

    number: int | None = None


_pretended = _Pretended()


def is_available() -> bool:
    """Return whether there are GPUs, real or pretended."""
    return devices.is_available()


def device_count() -> int:
    """Return the number of GPUs, real or pretended."""
    return devices.count()


def current_device() -> int:
    """Return the number of the GPU that "cuda" names: the local rank, or the number set by ``set_device``."""
    if torch.cuda.is_available():
        return cuda.current_device()
    count = devices.count()
    if _pretended.number is not None:
        return _pretended.number
    return get_local_rank() % count if count else 0


def set_device(device: Device) -> None:
    """Make ``device`` the GPU that "cuda" names.

    Raises:
        RuntimeError: there is no such device.
    """
    place = own_device(device)
    if place is not None and place.type == "cuda":
        cuda.set_device(place)
        return
    found = devices.named(f"cuda:{device}" if isinstance(device, int) else device or "cpu")
    if found is not None and found.is_accelerator:
        _pretended.number = found.number


def synchronize(device: Device = None) -> None:
    """Wait until a GPU has finished its work; do nothing on the CPU."""
    if torch.cuda.is_available():
        cuda.synchronize(own_device(device))


def empty_cache() -> None:
    """Return memory that no tensor uses to the GPU."""
    cuda.empty_cache()


def get_device_name(device: Device = None) -> str:
    """Return the name of a GPU; "CPU" if the CPU stands for it."""
    place = own_device("cuda" if device is None else device)
    return "CPU" if place is None or place.type != "cuda" else cuda.get_device_name(place)


def manual_seed(seed: int) -> None:
    """Seed the generator of this rank's GPU, or of the CPU that stands for it."""
    torch.manual_seed(seed) if devices.is_pretended() else cuda.manual_seed(seed)


manual_seed_all = manual_seed


__getattr__ = fall_through.names(__name__, [cuda], adapt=adapt)
