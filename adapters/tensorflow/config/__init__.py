"""``tf.config``: the devices that a program sees. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collshim.adapting.absent import saying
from collshim.tensorflow.config import experimental, logical, optimizer, threading
from collshim.tensorflow.config.logical import LogicalDevice, LogicalDeviceConfiguration, PhysicalDevice

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "experimental",
    "experimental_connect_to_cluster",
    "experimental_functions_run_eagerly",
    "experimental_run_functions_eagerly",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_soft_device_placement",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "optimizer",
    "run_functions_eagerly",
    "set_logical_device_configuration",
    "set_soft_device_placement",
    "set_visible_devices",
    "threading",
]


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the CPU and the GPUs, real or pretended, or only the devices of ``device_type``."""
    return logical.physical(device_type)


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """Return the devices with the names that strategies accept; from now on, devices cannot be configured."""
    return logical.logical(device_type)


def set_logical_device_configuration(device: Any, logical_devices: Sequence[LogicalDeviceConfiguration]) -> None:
    """Let a physical device count as several logical ones; all are the same device.

    Raises:
        ValueError: there is no such device, or a part of the CPU has a memory limit.
        RuntimeError: the logical devices were listed or used by a strategy before, and would change.
    """
    logical.divide(device, logical_devices)


def get_logical_device_configuration(device: Any) -> list[LogicalDeviceConfiguration] | None:
    """Return the logical devices of a physical device; None if it was not divided."""
    return logical.parts_of(device)


def set_visible_devices(devices: Any, device_type: str | None = None) -> None:
    """Hide all physical devices except these, or only those of ``device_type``; an empty list hides all.

    Raises:
        ValueError: there is no such device, or it has a different type.
        RuntimeError: the logical devices were listed or used by a strategy before, and would change.
    """
    logical.show_only(devices, device_type)


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the physical devices that are not hidden."""
    return logical.visible(device_type)


def set_soft_device_placement(enabled: bool) -> None:
    """Do nothing: tensors are where torch puts them, whatever device is named."""


def get_soft_device_placement() -> bool:
    """Return True: no operation fails because of a device's name."""
    return True


def experimental_connect_to_cluster(cluster_spec_or_resolver: Any, *args: Any, **kwargs: Any) -> None:
    """Do nothing: the ranks of a world need no servers."""


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Do nothing: functions always run eagerly."""


experimental_run_functions_eagerly = run_functions_eagerly


def functions_run_eagerly() -> bool:
    """Return True: ``tf.function`` runs its function as written."""
    return True


experimental_functions_run_eagerly = functions_run_eagerly


__getattr__ = saying(__name__, "there is nothing else to configure: torch computes")
