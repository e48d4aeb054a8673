"""The devices that a program sees, and their division into logical ones. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from collshim.adapting import devices as real
from collshim.errors import ArgumentError, ArgumentValueError, also

_KINDS = ("CPU", "GPU")


class PhysicalDevice(NamedTuple):
    """A device of this machine: its name and type."""

    name: str
    device_type: str


class LogicalDevice(NamedTuple):
    """A device, or a part of one, by the name that strategies and ``tf.device`` take."""

    name: str
    device_type: str


class LogicalDeviceConfiguration(NamedTuple):
    """One part of a physical device; the limit and the priority have no effect, as torch allocates memory."""

    memory_limit: float | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


class _State:
    """The configuration of a program; fixed once the logical devices were listed."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.parts: dict[PhysicalDevice, list[LogicalDeviceConfiguration]] = {}
        self.visible: dict[str, list[PhysicalDevice]] = {}
        self.is_fixed = False


_STATE = _State()


def physical(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the CPU and the GPUs, real or pretended; only those of ``device_type`` if it is given."""
    found = [PhysicalDevice("/physical_device:CPU:0", "CPU")]
    found += [PhysicalDevice(f"/physical_device:GPU:{number}", "GPU") for number in range(real.count())]
    return [device for device in found if device_type in (None, device.device_type)]


def visible(device_type: str | None = None) -> list[PhysicalDevice]:
    """Return the physical devices that the program has not hidden."""
    return [one for one in physical(device_type) if one in _STATE.visible.get(one.device_type, [one])]


def logical(device_type: str | None = None) -> list[LogicalDevice]:
    """Return the logical devices, numbered for each type; from now on, the configuration is fixed."""
    _STATE.is_fixed = True
    found = []
    for kind in _KINDS:
        parts = sum(len(_STATE.parts.get(one) or (None,)) for one in visible(kind))
        found += [LogicalDevice(f"/device:{kind}:{number}", kind) for number in range(parts)]
    return [device for device in found if device_type in (None, device.device_type)]


def parts_of(device: Any) -> list[LogicalDeviceConfiguration] | None:
    """Return the parts of a physical device; None if it is not divided."""
    require_known(device)
    return _STATE.parts.get(device)


def divide(device: Any, parts: Sequence[LogicalDeviceConfiguration]) -> None:
    """Divide a physical device; see ``set_logical_device_configuration``."""
    require_known(device)
    if device.device_type == "CPU" and any(part.memory_limit is not None for part in parts):
        raise ArgumentValueError("Setting memory limit on CPU virtual devices is currently not supported")
    with _STATE.lock:
        if _STATE.parts.get(device) == (list(parts) or None):
            return
        _require_open("Virtual devices")
        _STATE.parts[device] = list(parts)


def show_only(devices: Any, device_type: str | None) -> None:
    """Hide all but one device, or a list of them; see ``set_visible_devices``."""
    shown: list[Any] = (
        list(devices) if isinstance(devices, list | tuple) and not hasattr(devices, "_fields") else [devices]
    )
    for device in shown:
        require_known(device)
        if device_type not in (None, device.device_type):
            raise ArgumentValueError(f"Unrecognized device: {device!r}")
    kinds = _KINDS if device_type is None else (device_type,)
    with _STATE.lock:
        wanted: dict[str, list[PhysicalDevice]] = {
            kind: [device for device in shown if device.device_type == kind] for kind in kinds
        }
        if all(visible(kind) == wanted[kind] for kind in kinds):
            return
        _require_open("Visible devices")
        _STATE.visible |= wanted


def require_known(device: Any) -> None:
    """Refuse a value that is not a device of this machine.

    Raises:
        ValueError: ``device`` is not a device of this machine; the text shows it.
    """
    if device not in physical():
        raise ArgumentValueError(f"Unrecognized device: {device!r}")


def _require_open(what: str) -> None:
    if _STATE.is_fixed:
        raise also(ArgumentError, RuntimeError)(f"{what} cannot be modified after being initialized")
