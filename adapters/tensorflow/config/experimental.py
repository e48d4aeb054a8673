"""``tf.config.experimental``: older names, and the growth of a GPU's memory. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.errors import ArgumentValueError
from collshim.tensorflow.config import logical
from collshim.tensorflow.config.logical import LogicalDevice, LogicalDeviceConfiguration, PhysicalDevice

__all__ = [
    "VirtualDeviceConfiguration",
    "enable_op_determinism",
    "enable_tensor_float_32_execution",
    "get_device_details",
    "get_device_policy",
    "get_memory_growth",
    "get_memory_info",
    "get_memory_usage",
    "get_synchronous_execution",
    "get_virtual_device_configuration",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "reset_memory_stats",
    "set_device_policy",
    "set_memory_growth",
    "set_synchronous_execution",
    "set_virtual_device_configuration",
    "set_visible_devices",
    "tensor_float_32_execution_enabled",
]

VirtualDeviceConfiguration = LogicalDeviceConfiguration
_GROWING: set[PhysicalDevice] = set()


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Call ``tf.config.list_physical_devices``."""
    return logical.physical(device_type)


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Call ``tf.config.list_logical_devices``."""
    return logical.logical(device_type)


def set_virtual_device_configuration(device: Any, logical_devices: Sequence[LogicalDeviceConfiguration]) -> None:
    """Call ``tf.config.set_logical_device_configuration``."""
    logical.divide(device, logical_devices)


def get_virtual_device_configuration(device: Any) -> list[LogicalDeviceConfiguration] | None:
    """Call ``tf.config.get_logical_device_configuration``."""
    return logical.parts_of(device)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Call ``tf.config.set_visible_devices``."""
    logical.show_only(devices, device_type)


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Call ``tf.config.get_visible_devices``."""
    return logical.visible(device_type)


def set_memory_growth(device: Any, enable: bool) -> None:
    """Store the choice, which has no other effect: torch's GPU memory always grows on demand.

    Raises:
        ValueError: there is no such device, it is a CPU, or it is divided into logical devices.
    """
    logical.require_known(device)
    if logical.parts_of(device):
        raise ArgumentValueError("Cannot set memory growth on device when virtual devices configured")
    if device.device_type != "GPU":
        raise ArgumentValueError("Cannot set memory growth on non-GPU and non-Pluggable devices")
    (_GROWING.add if enable else _GROWING.discard)(device)


def get_memory_growth(device: Any) -> bool:
    """Return the value that ``set_memory_growth`` last set.

    Raises:
        ValueError: there is no such device.
    """
    logical.require_known(device)
    return device in _GROWING


def enable_op_determinism() -> None:
    """Let torch choose algorithms whose results are the same in every run; it warns of others."""
    torch.use_deterministic_algorithms(True, warn_only=True)


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Let torch round float32 in the products of matrices on GPUs, or not."""
    torch.backends.cuda.matmul.allow_tf32 = bool(enabled)


def tensor_float_32_execution_enabled() -> bool:
    """Return whether torch rounds float32 in the products of matrices on GPUs; torch's default is False."""
    return bool(torch.backends.cuda.matmul.allow_tf32)


def get_device_details(device: Any) -> dict[str, Any]:
    """Return the name of a GPU as ``device_name``; nothing for other devices.

    Raises:
        ValueError: there is no such device.
    """
    logical.require_known(device)
    place = _gpu(device.name)
    return {} if place is None else {"device_name": torch.cuda.get_device_name(place)}


def get_memory_info(device: str) -> dict[str, int]:
    """Return the bytes that torch holds on a GPU, as ``current`` and ``peak``; 0 for other devices."""
    place = _gpu(device)
    if place is None:
        return {"current": 0, "peak": 0}
    return {"current": torch.cuda.memory_allocated(place), "peak": torch.cuda.max_memory_allocated(place)}


def get_memory_usage(device: str) -> int:
    """Return the bytes that torch holds on a GPU; 0 for other devices."""
    return get_memory_info(device)["current"]


def reset_memory_stats(device: str) -> None:
    """Let the peak of ``get_memory_info`` start again."""
    place = _gpu(device)
    if place is not None:
        torch.cuda.reset_peak_memory_stats(place)


def _gpu(name: str) -> int | None:
    """Return the number of a GPU that is real, by the name of the device; None for other devices."""
    kind, _, number = str(name).upper().rpartition(":")
    is_real = kind.endswith("GPU") and int(number or 0) < torch.cuda.device_count()
    return int(number or 0) if is_real else None


def set_device_policy(device_policy: str | None) -> None:
    """Do nothing: tensors are where torch puts them."""


def get_device_policy() -> str:
    """Return "silent": no operation fails because of its inputs' devices."""
    return "silent"


def set_synchronous_execution(enable: bool) -> None:
    """Do nothing: calls return when torch's do."""


def get_synchronous_execution() -> bool:
    """Return True."""
    return True


__getattr__ = saying(__name__, "there is nothing else to configure: torch computes")
