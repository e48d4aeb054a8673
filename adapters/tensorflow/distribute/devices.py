"""Names of devices, as TensorFlow writes them; names only, data stays where it is."""

from __future__ import annotations

import re
from typing import Any

import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError

_PLACE = "/job:localhost/replica:0/task:0"
_NAME = re.compile(r"(?P<place>(/(job|replica|task):\w+)*)/?(device:)?(?P<kind>[A-Za-z]+)(:(?P<index>\d+|\*))?")


def canonical(device: Any, place: str = _PLACE) -> str:
    """``"gpu:1"``, ``"/GPU:1"`` or ``"/device:GPU:1"`` as ``"/job:localhost/replica:0/task:0/device:GPU:1"``.

    Raises:
        ArgumentTypeError: no string.
        ArgumentValueError: no name of a device.
    """
    if not isinstance(device, str):
        raise ArgumentTypeError(f"device is {device!r}, should be a name such as 'GPU:0'")
    found = _NAME.fullmatch(device)
    if found is None:
        raise ArgumentValueError(f"device is {device!r}, should be a name such as 'GPU:0' or '/cpu:0'")
    return f"{found['place'] or place}/device:{found['kind'].upper()}:{found['index'] or 0}"


def visible() -> list[str]:
    """One name per GPU that torch sees; the CPU's where it sees none."""
    return [f"GPU:{index}" for index in range(torch.cuda.device_count())] or ["CPU:0"]


def cuda_index(device: str) -> int | None:
    """The number of the GPU that a canonical name means, where torch sees that GPU."""
    kind, _, index = device.rpartition("/device:")[2].partition(":")
    if kind != "GPU" or not index.isdigit() or int(index) >= torch.cuda.device_count():
        return None
    return int(index)
