"""Names of devices, as the frameworks write them; and CPU memory where a program names accelerators that are not there.

A program that says ``"cuda:1"`` runs on a machine without one where the user says so, by one switch:

    COLLSHIM_DEVICE=cpu python script.py                  # for a process and what it starts
    collshim run --device cpu -n 4 script.py              # for the ranks of a world
    with collshim.options(device="cpu"): ...              # for a block of code

An accelerator's name then stands for the CPU, which is told once in a process, by a line in the log ``collshim``. How
many accelerators there seem to be is ``COLLSHIM_DEVICES=2``, ``--devices 2``, ``options(devices=2)``; without it, as
many as this machine has ranks, while a name may have any number. Without the switch such a name is an error that names
the switch. The switch changes nothing where a GPU is there.

An adapter asks here at each of its doors:

    resolve(name, error)    ``torch.device`` for a framework's name, or ``error``
    named(name)             the kind and the number that a name says, for what looks at them
    count()                 how many accelerators a program is told of
    is_available()          whether there are any, real or pretended
    is_pretended()          whether names of accelerators stand for the CPU now
    tell_of_cpu(framework)  logs, once, that its adapter keeps tensors on the CPU though GPUs are there
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

import torch

from collshim import world
from collshim.accelerator import ACCELERATOR, module
from collshim.environment import read
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
    """What a name says: "cpu" or the kind of an accelerator, in small letters, and its number; None without one."""

    kind: str
    number: int | None

    @property
    def is_accelerator(self) -> bool:
        """Whether this is no CPU."""
        return self.kind != "cpu"


def named(name: str | torch.device) -> DeviceName | None:
    """The parts of a device's name in any framework's spelling; None where it is no device's name.

    ``"cuda"``, ``"cuda:1"``, ``"gpu0"``, ``"gpux"``, ``"xpu0:1"`` (MegEngine's, number and stream), ``"Ascend"``,
    ``"npu:3"``, ``"GPU:0"``, ``"/device:GPU:0"`` and others; capitals do not count.
    """
    match = _NAME.fullmatch(str(name))
    if match is None:
        return None
    number = match["number"]
    return DeviceName(match["kind"].lower(), int(number) if number is not None and number.isdecimal() else None)


def resolve(name: str | torch.device, error: type[Exception] = RuntimeError) -> torch.device:
    """The device that ``name`` stands for on this machine.

    Returns:
        The CPU, without a number, for its names; a real GPU, with its number if ``name`` has one, where there are
        some; the CPU where there are none and the switch is on. A device of torch's that is no accelerator, such as
        "meta", is given as it is.

    Raises:
        error: (an ``ArgumentValueError`` too) no such name; an accelerator that is not there, with the switch off; a
            number outside of the real devices, or of those that ``devices`` pretends.
    """
    found = named(name)
    if found is None:
        return _other(name, error)
    if not found.is_accelerator:
        return torch.device("cpu")
    _require_number(name, found, error)
    if not module().is_available():
        warn_once("this machine has no GPU: %r and other names of accelerators stand for the CPU here", str(name))
        return torch.device("cpu")
    return torch.device(ACCELERATOR) if found.number is None else torch.device(ACCELERATOR, found.number)


def count() -> int:
    """How many accelerators a program is told of: the real GPUs, those that are pretended, or 0."""
    if module().is_available():
        return int(module().device_count())
    if not is_pretended():
        return 0
    chosen = current_options().devices
    if chosen is not None:
        return chosen
    own = world.peek()
    place = read(None, None, None, None, needs_address=False, overrides=True) if own is None else own
    return place.local_size


def is_available() -> bool:
    """Whether there are accelerators, real or pretended."""
    return count() > 0


def is_pretended() -> bool:
    """Whether names of accelerators stand for the CPU: the switch is on and no GPU is there."""
    return current_options().device == "cpu" and not bool(module().is_available())


@cache
def tell_of_cpu(framework: str) -> None:
    """Log, once in a process, that an adapter keeps tensors on the CPU though GPUs are there; called at its doors."""
    if module().device_count():
        place = "the GPUs of this machine hold what the program itself puts there"
        warn_once(f"collshim.{framework} keeps tensors on the CPU: {place}")


def _require_number(name: str | torch.device, found: DeviceName, error: type[Exception]) -> None:
    there = int(module().device_count()) if module().is_available() else 0
    if not there and not is_pretended():
        raise _refusal(error)(
            f"device is {str(name)!r}, and this machine has no GPU: should be 'cpu', or be taken for it by {_SWITCH}"
            + world.place()
        )
    limit = there or current_options().devices
    if limit is not None and (found.number or 0) >= limit:
        whose = "this machine has" if there else "options(devices=...) or COLLSHIM_DEVICES pretends"
        raise _refusal(error)(
            f"device is {str(name)!r}, should have a number below {limit}: as many {whose}{world.place()}"
        )


def _other(name: str | torch.device, error: type[Exception]) -> torch.device:
    """A device that torch alone knows."""
    try:
        return torch.device(name)
    except (RuntimeError, TypeError, ValueError) as unknown:
        known = f"'cpu', or one of {', '.join(_ACCELERATORS)} with or without a number"
        raise _refusal(error)(f"device is {name!r}, should be {known}{world.place()}") from unknown


def _refusal(error: type[Exception]) -> type[CollshimError]:
    return also(ArgumentValueError, error)
