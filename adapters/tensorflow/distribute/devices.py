"""Names of devices, in TensorFlow's form; they are only names, and data does not move."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch

from collshim.adapting import devices
from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.config.logical import LogicalDevice, logical

_PLACE = "/job:localhost/replica:0/task:0"
_NAME = re.compile(
    r"(?P<place>(/(job|replica|task):\w+)*)/?(?P<any>device:)?(?P<kind>[A-Za-z]\w*)(:(?P<index>\d+|\*))?"
)
_PART = re.compile(r"/(job|replica|task):(\w+)")
_CURRENT: ContextVar[str] = ContextVar("device", default=f"{_PLACE}/device:CPU:0")
_KINDS = ("CPU", "GPU", "TPU", "CUSTOM", "EPU")  # TensorFlow accepts these without "device:" before them


def canonical(device: Any, place: str = _PLACE) -> str:
    """Convert ``"gpu:1"``, ``"/GPU:1"`` or ``"/device:GPU:1"`` to ``"/job:localhost/replica:0/task:0/device:GPU:1"``.

    None and the empty name are the first CPU. A ``tf.config.LogicalDevice`` has such a name.

    Raises:
        ArgumentTypeError: ``device`` is neither a string nor a logical device.
        ArgumentValueError: ``device`` is not the name of a device.
    """
    if isinstance(device, LogicalDevice):
        device = device.name
    if device is None or device in ("", "/"):
        return f"{place}/device:CPU:0"
    if not isinstance(device, str):
        raise ArgumentTypeError(f"device is {device!r}, should be a name such as 'GPU:0', or a tf.config.LogicalDevice")
    match = _NAME.fullmatch(device)
    if match is None or not (match["any"] or match["kind"].upper() in _KINDS):
        raise _unknown(device, match["kind"] if match else device.lstrip("/").partition(":")[0])
    index = 0 if match["index"] in (None, "*") else int(match["index"])
    if match["kind"].upper() != "CPU":
        devices.tell_of_cpu("tensorflow")
    return f"{_full_place(match['place'], place)}/device:{match['kind'].upper()}:{index}"


def _full_place(place: str, default: str) -> str:
    """Return the job, replica and task, by default those of ``default``."""
    parts = dict(_PART.findall(default)) | dict(_PART.findall(place))
    return "".join(f"/{name}:{value}" for name, value in parts.items())


def _unknown(device: str, attribute: str) -> ArgumentValueError:
    return ArgumentValueError(
        f"device is {device!r}, should be a name such as 'GPU:0' or '/cpu:0': Unknown attribute {attribute!r} is "
        f"encountered while parsing the device spec: {device!r}."
    )


@contextmanager
def named(device: Any) -> Iterator[None]:
    """Make ``device`` the name of the block's device, which is the device of variables that are made in the block."""
    token = _CURRENT.set(canonical(device))
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current() -> str:
    """Return the name of the device of the caller's innermost ``tf.device``, or of the first CPU without one."""
    return _CURRENT.get()


def visible() -> list[str]:
    """Return the names of the logical GPUs, real or pretended, or of the CPUs if there is no GPU."""
    return [device.name for device in logical("GPU") or logical("CPU")] or ["CPU:0"]


def cuda_index(device: str) -> int | None:
    """Return the number of the GPU of a canonical name if torch sees that GPU, and None otherwise."""
    kind, _, index = device.rpartition("/device:")[2].partition(":")
    if kind != "GPU" or not index.isdigit() or int(index) >= torch.cuda.device_count():
        return None
    return int(index)
