"""``tf.config``: the devices that are reported to a program."""

from __future__ import annotations

from typing import Any, NamedTuple

from collshim.adapting import devices


class PhysicalDevice(NamedTuple):
    """A device's name and type."""

    name: str
    device_type: str


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the CPU and the GPUs, real or pretended; only those of ``device_type`` if it is given."""
    found = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    found += [PhysicalDevice(f"/physical_device:GPU:{number}", "GPU") for number in range(devices.count())]
    return [device for device in found if device_type in (None, device.device_type)]


def list_logical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the same devices, by the names that strategies take."""
    return [
        PhysicalDevice(f"/device:{one.name.removeprefix('/physical_device:')}", one.device_type)
        for one in list_physical_devices(device_type)
    ]


def experimental_connect_to_cluster(cluster_spec_or_resolver: Any, *args: Any, **kwargs: Any) -> None:
    """Do nothing: the ranks of a world need no servers."""


def run_functions_eagerly(run_eagerly: bool) -> None:
    """Do nothing: functions always run eagerly."""
