"""Device names in the frameworks' spellings, and CPU memory in place of accelerators that the machine lacks.

A program that names ``"cuda:1"`` runs on a machine without GPUs if the user turns on one switch:

    COLLSHIM_DEVICE=cpu python script.py                  # for a process and its children
    collshim run --device cpu -n 4 script.py              # for the ranks of a world
    with collshim.options(device="cpu"): ...              # for a block of code

An accelerator's name then stands for the CPU, which is logged once in a process, by the logger ``collshim``. The number
of accelerators that the program sees is ``COLLSHIM_DEVICES=2``, ``--devices 2``, or ``options(devices=2)``. Without it,
it is the number of ranks on this machine, while a name may have any number. Without the switch such a name is an error
that mentions the switch. The switch has no effect if there is a GPU.

Each function of an adapter that takes a device uses these:

    resolve(name, error)    ``torch.device`` for a framework's name, or ``error``
    named(name)             the kind and the number in a name, for code that needs them
    count()                 the number of accelerators that a program sees
    is_available()          whether there are any, real or pretended
    is_pretended()          whether names of accelerators stand for the CPU now
    tell_of_cpu(framework)  logs, once, that its adapter keeps tensors on the CPU although there are GPUs
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import torch

from collshim import world
from collshim.accelerator import ACCELERATOR, module
from collshim.environment import LaunchedRank, read
from collshim.errors import ArgumentValueError, CollshimError, also
from collshim.log import warn_once
from collshim.settings import get as current_options

_ACCELERATORS = ("cuda", "gpu", "xpu", "rocm", "hip", "npu", "ascend", "mlu", "dcu", "cambricon")
_NAME = re.compile(
    rf"(?:(?:/job:\w+)?(?:/replica:\d+)?(?:/task:\d+)?/(?:device:)?)?"  # TensorFlow's: /job:worker/task:0/device:GPU:1
    rf"(?P<kind>cpu|{'|'.join(_ACCELERATORS)})(?::?(?P<number>\d+|x|\*))?(?::\d+)?",
    re.IGNORECASE,
)
_SWITCH = "COLLSHIM_DEVICE=cpu, collshim run --device cpu, or collshim.options(device='cpu')"


class DeviceName(NamedTuple):
    """The parts of a name: "cpu" or the kind of an accelerator, in lower case, and its number, or None without one."""

    kind: str
    number: int | None

    @property
    def is_accelerator(self) -> bool:
        """Whether this is not the CPU."""
        return self.kind != "cpu"


def named(name: str | torch.device) -> DeviceName | None:
    """Return the parts of a device's name in any framework's spelling; None if it is not a device's name.

    ``"cuda"``, ``"cuda:1"``, ``"gpu0"``, ``"gpux"``, ``"xpu0:1"`` (MegEngine's, number and stream), ``"Ascend"``,
    ``"npu:3"``, ``"GPU:0"``, ``"/device:GPU:0"`` and others; case is ignored.
    """
    match = _NAME.fullmatch(str(name))
    if match is None:
        return None
    number = match["number"]
    return DeviceName(match["kind"].lower(), int(number) if number is not None and number.isdecimal() else None)


def resolve(name: str | torch.device, error: type[Exception] = RuntimeError) -> torch.device:
    """Return the device that ``name`` stands for on this machine.

    Returns:
        The CPU, without a number, for its names. For an accelerator's name, a real GPU if there is one, with its number
        if ``name`` has one; the CPU if there is none and the switch is on. Other devices of torch's, such as "meta",
        are returned unchanged.

    Raises:
        error: (an ``ArgumentValueError`` too) there is no such device; the machine lacks the accelerator, and the
            switch is off; or the number is beyond the real devices, or those that ``devices`` pretends.
    """
    found = named(name)
    if found is None:
        return _other(name, error)
    if not found.is_accelerator:
        return torch.device("cpu")
    _require_number(name, found, error)
    if not module().is_available():
        warn_once("this machine has no GPU: %r and other names of accelerators mean the CPU here", str(name))
        return torch.device("cpu")
    return torch.device(ACCELERATOR) if found.number is None else torch.device(ACCELERATOR, found.number)


def count() -> int:
    """Return the number of accelerators that a program sees: the real GPUs, the pretended ones, or 0."""
    if module().is_available():
        return int(module().device_count())
    if not is_pretended():
        return 0
    chosen = current_options().devices
    return _launched().local_size if chosen is None else chosen


def own_number() -> int:
    """Return the number of this rank's accelerator among those of its machine."""
    return _launched().local_rank % max(count(), 1)


def _launched() -> world.World | LaunchedRank:
    own = world.peek()
    return read(None, None, None, None, needs_address=False, overrides=True) if own is None else own


def is_available() -> bool:
    """Return whether there are accelerators, real or pretended."""
    return count() > 0


def is_pretended() -> bool:
    """Return whether names of accelerators stand for the CPU: the switch is on and there is no GPU."""
    return current_options().device == "cpu" and not bool(module().is_available())


@cache
def tell_of_cpu(framework: str) -> None:
    """Log, once in a process, that an adapter keeps tensors on the CPU although there are GPUs; see the module."""
    if module().device_count():
        gpus = "this machine's GPUs hold only what the program itself puts there"
        warn_once(f"collshim.{framework} keeps tensors on the CPU: {gpus}")


def _require_number(name: str | torch.device, found: DeviceName, error: type[Exception]) -> None:
    there = int(module().device_count()) if module().is_available() else 0
    if not there and not is_pretended():
        raise _refusal(error)(
            f"device is {str(name)!r}, and this machine has no GPU: should be 'cpu', or mean the CPU by {_SWITCH}"
            + world.place()
        )
    limit = there or current_options().devices
    if limit is not None and (found.number or 0) >= limit:
        whose = "this machine has" if there else "options(devices=...) or COLLSHIM_DEVICES pretends"
        raise _refusal(error)(
            f"device is {str(name)!r}, should have a number below {limit}: as many {whose}{world.place()}"
        )


def _other(name: str | torch.device, error: type[Exception]) -> torch.device:
    """Return a device that only torch knows."""
    try:
        return torch.device(name)
    except (RuntimeError, TypeError, ValueError) as unknown:
        known = f"'cpu', or one of {', '.join(_ACCELERATORS)} with or without a number"
        raise _refusal(error)(f"device is {name!r}, should be {known}{world.place()}") from unknown


def _refusal(error: type[Exception]) -> type[CollshimError]:
    return also(ArgumentValueError, error)
