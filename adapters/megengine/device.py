"""Devices by MegEngine's names: "xpux", "gpu0", "cpu1", "xpu0:1" (source: MegEngine 1.13.0, ``megengine.device``).

The number "x" means any number. After the colon comes a stream, which is accepted and left to torch. "xpu" is a GPU if
there is one, and otherwise the CPU; "gpu" and "rocm" are GPUs, or the CPU if ``COLLSHIM_DEVICE=cpu`` is set.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from typing import NoReturn

import torch

from collshim.adapting import devices
from collshim.errors import ArgumentValueError, CollshimError, also

__all__ = [
    "coalesce_free_memory",
    "get_allocated_memory",
    "get_cuda_compute_capability",
    "get_cuda_device_property",
    "get_cuda_driver_version",
    "get_cuda_version",
    "get_cudnn_version",
    "get_default_device",
    "get_device_count",
    "get_max_allocated_memory",
    "get_max_reserved_memory",
    "get_mem_status_bytes",
    "get_reserved_memory",
    "get_tensorrt_version",
    "is_atlas_available",
    "is_cambricon_available",
    "is_cuda_available",
    "is_rocm_available",
    "reset_max_memory_stats",
    "set_default_device",
    "set_prealloc_config",
    "what_is_xpu",
]

_NAME = re.compile(r"(xpu|gpu|cpu|cuda|rocm|multithread)(x|\d+)(:\d+)?")
_KINDS = ("cpu", "gpu", "xpu", "rocm")


class CompNode(str):
    """A device name as tensors report it, with the stream: ``"xpux:0"``; it also equals the name without the stream."""

    __slots__ = ()

    def __new__(cls, name: str) -> CompNode:
        """Add the default stream to a name without a stream."""
        return super().__new__(cls, _with_stream(name))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and str(self) == _with_stream(other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(str(self))

    def __repr__(self) -> str:
        return f'CompNode("{self.physical_name}" from "{self}")'

    @property
    def logical_name(self) -> str:
        """The name as it was passed."""
        return str(self)

    @property
    def physical_name(self) -> str:
        """The name of the actual device: ``"cpu0:0"``."""
        kind, number, stream = parsed(self)
        kind = what_is_xpu() if kind == "xpu" else kind
        return f"{kind}{0 if number is None else number}:{stream}"


class _Default(threading.local):
    """The default device of one rank; ranks that are threads have separate defaults."""

    def __init__(self) -> None:
        self.name = os.environ.get("MGE_DEFAULT_DEVICE", "xpux")


_default = _Default()


def parsed(name: str) -> tuple[str, int | None, int]:
    """Return the kind, number (None for any) and stream in a device name.

    Raises:
        RuntimeError: (a ValueError too) ``name`` is not a device name.
    """
    match = _NAME.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise also(ArgumentValueError, RuntimeError)(f"invalid comp node id: {name}")
    number = None if match[2] == "x" else int(match[2])
    return match[1], number, int(match[3][1:]) if match[3] else 0


def is_valid(name: object) -> bool:
    """Return whether ``name`` is a device name."""
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def torch_device(name: str) -> torch.device:
    """Return the torch device for this name.

    Raises:
        RuntimeError: ``name`` is not a device name, or names a GPU that does not exist and has no replacement.
    """
    kind = parsed(name)[0]
    if kind in ("cpu", "multithread") or (kind == "xpu" and not torch.cuda.is_available()):
        return torch.device("cpu")
    try:
        return devices.resolve(name)
    except ArgumentValueError as error:
        raise also(ArgumentValueError, RuntimeError)(f"invalid comp node id: {name}: {error}") from None


def get_device_count(device_type: str) -> int:
    """Return the number of devices of a kind: "cpu", "gpu", "rocm" or "xpu" (GPUs if there are any, otherwise CPUs).

    The GPUs are real, or pretended (``COLLSHIM_DEVICE``, ``COLLSHIM_DEVICES``).

    Raises:
        AssertionError: ``device_type`` is any other kind.
    """
    if device_type not in _KINDS:
        raise also(ArgumentValueError, AssertionError)(f"device must be one of {_KINDS}: it is {device_type!r}")
    if device_type == "rocm" and not torch.version.hip:
        return 0
    accelerators = 0 if device_type == "cpu" else devices.count()
    return (accelerators or os.cpu_count() or 1) if device_type in ("cpu", "xpu") else accelerators


def is_cuda_available() -> bool:
    """Return whether there are GPUs, real or pretended."""
    return devices.is_available()


def is_rocm_available() -> bool:
    """Return whether there are AMD GPUs."""
    return get_device_count("rocm") > 0


def is_cambricon_available() -> bool:
    """Return False: torch has no such devices."""
    return False


def is_atlas_available() -> bool:
    """Return False: torch has no such devices."""
    return False


def set_default_device(device: str = "xpux") -> None:
    """Set the device for this rank's new tensors; AssertionError for an invalid name."""
    if not is_valid(device):
        raise also(ArgumentValueError, AssertionError)(f"Invalid device name {device}")
    _default.name = device


def get_default_device() -> str:
    """Return the device for this rank's new tensors; by default that in ``MGE_DEFAULT_DEVICE``, or "xpux"."""
    return _default.name


def what_is_xpu() -> str:
    """Return the kind of device that "xpu" is here: "gpu" or "cpu"."""
    return "gpu" if torch.cuda.is_available() else "cpu"


def get_allocated_memory(device: str | None = None) -> int:
    """Return the bytes that tensors occupy on a GPU; 0 on the CPU."""
    return _statistic(torch.cuda.memory_allocated, device)


def get_reserved_memory(device: str | None = None) -> int:
    """Return the bytes that torch reserves on a GPU; 0 on the CPU."""
    return _statistic(torch.cuda.memory_reserved, device)


def get_max_allocated_memory(device: str | None = None) -> int:
    """Return the most bytes that tensors have occupied on a GPU; 0 on the CPU."""
    return _statistic(torch.cuda.max_memory_allocated, device)


def get_max_reserved_memory(device: str | None = None) -> int:
    """Return the most bytes that torch has reserved on a GPU; 0 on the CPU."""
    return _statistic(torch.cuda.max_memory_reserved, device)


def reset_max_memory_stats(device: str | None = None) -> None:
    """Reset the maxima that ``get_max_allocated_memory`` and ``get_max_reserved_memory`` return."""
    place = torch_device(device or get_default_device())
    if place.type == "cuda":
        torch.cuda.reset_peak_memory_stats(place)


def get_mem_status_bytes(device: str | None = None) -> tuple[int, int]:
    """Return the total and free bytes of a GPU, or of this machine if the device is the CPU."""
    place = torch_device(device or get_default_device())
    if place.type == "cuda":
        free, total = torch.cuda.mem_get_info(place)
        return total, free
    page = os.sysconf("SC_PAGE_SIZE")
    return os.sysconf("SC_PHYS_PAGES") * page, os.sysconf("SC_AVPHYS_PAGES") * page


def coalesce_free_memory() -> None:
    """Release the GPU memory that torch reserves but does not use."""
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def set_prealloc_config(
    alignment: int = 1,
    min_req: int = 32 * 1024 * 1024,
    max_overhead: int = 0,
    growth_factor: float = 2.0,
    device_type: str = "cuda",
) -> None:
    """Do nothing: torch's allocator has no equivalent settings, and grows as needed."""


def get_cuda_compute_capability(device: int, device_type: str = "cuda") -> int:
    """Return the compute capability of a GPU, such as 80 for 8.0."""
    _require_gpu("get_cuda_compute_capability")
    major, minor = torch.cuda.get_device_capability(device)
    return major * 10 + minor


def get_cuda_device_property(device: int, device_type: str = "cuda") -> object:
    """Return torch's properties of a GPU."""
    _require_gpu("get_cuda_device_property")
    return torch.cuda.get_device_properties(device)


def get_cuda_version() -> int:
    """Return the CUDA version that torch was built for, such as 12010 for 12.1."""
    numbers = [int(part) for part in (_cuda_of_torch() or "0.0").split(".")[:2]]
    return numbers[0] * 1000 + numbers[1] * 10


def get_cudnn_version() -> int:
    """Return the version of the cuDNN that torch uses; 0 without one."""
    return torch.backends.cudnn.version() or 0 if torch.cuda.is_available() else 0


def get_cuda_driver_version() -> NoReturn:
    """Raise RuntimeError, because torch does not report the version."""
    raise also(CollshimError, RuntimeError)("get_cuda_driver_version: torch does not report it: use nvidia-smi")


def get_tensorrt_version() -> int:
    """Return 0: TensorRT is not used."""
    return 0


def _with_stream(name: str) -> str:
    return str(name) if ":" in name else f"{name}:0"


def _cuda_of_torch() -> str | None:
    version: str | None = torch.version.cuda
    return version


def _statistic(ask: Callable[[torch.device], int], device: str | None) -> int:
    place = torch_device(device or get_default_device())
    return int(ask(place)) if place.type == "cuda" else 0


def _require_gpu(what: str) -> None:
    if not torch.cuda.is_available():
        raise also(CollshimError, RuntimeError)(f"{what}: this machine has no GPU")
