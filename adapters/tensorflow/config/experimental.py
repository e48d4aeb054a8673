"""``tf.config.experimental``: older names, and the growth of a GPU's memory. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collshim.adapting.absent import saying
from collshim.errors import ArgumentValueError
from collshim.tensorflow.config import logical
from collshim.tensorflow.config.logical import LogicalDevice, LogicalDeviceConfiguration, PhysicalDevice

__all__ = [
    "VirtualDeviceConfiguration",
    "get_memory_growth",
    "get_virtual_device_configuration",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "set_memory_growth",
    "set_virtual_device_configuration",
    "set_visible_devices",
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


__getattr__ = saying(__name__, "there is nothing else to configure: torch computes")
