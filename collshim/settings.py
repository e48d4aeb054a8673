"""Options: what a user may choose for a block of code, and where the defaults come from.

    with collshim.options(timeout=20.0, mindspore_gather="stacked"):
        tensor, handle = comm_func.all_gather_into_tensor(x)

The engine's options are the fields of ``Options``; an adapter's are listed, with their values, in its framework's entry
(``collshim.frameworks``). Defaults come from the environment: ``COLLSHIM_`` and the option's name in capitals.
Ranks may choose differently, except for the check.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from functools import cache, partial
from typing import Any, Literal

from collshim.errors import ArgumentTypeError, ArgumentValueError

_CHOICES = {
    "objects": ("any", "safe", "refuse"),
    "transport": ("auto", "gloo", "shared_memory"),
    "clock": ("system", "jumping"),
}


@dataclasses.dataclass(frozen=True)
class Options:
    """The options in force.

    Attributes:
        timeout: seconds that a wait may take; read when a communicator is made.
        check: whether ranks compare their calls before data moves. None switches the check on between threads; between
            processes, on for calls on CPU tensors and off for calls on CUDA tensors, which NCCL carries. "sites"
            switches it on, and also warns if calls that agree were made from different lines of the program. Read when
            a world is made.
        object_bytes: the largest size in bytes of a pickled object in a collective; the sender refuses larger objects.
        objects: which pickled objects a rank restores. "any": all that pickle can restore, which can run code that the
            sender chose; "safe": only numbers, text, containers, tensors and NumPy arrays; "refuse": none, so the rank
            takes part in no object collective. Read when a call is posted.
        find_nan: whether every rank searches its inputs to reductions for NaN; if one is found, all ranks get a
            ``NotANumberError`` that names the rank that has it. This needs the check.
        transport: what carries the data of CPU tensors between processes: "shared_memory", "gloo", or "auto", which is
            shared memory if all ranks of a group can map the same memory, and gloo otherwise. Read when a group is
            made.
        clock: the clock that measures deadlines between ranks that are threads: "system"; or "jumping", which jumps to
            the next deadline as soon as all ranks are blocked, so that tests of deadlines take no time. Read when a
            world is made.
        device: with "cpu", names of accelerators ("cuda:1", "gpu0", "Ascend") mean the CPU on a machine without
            accelerators; with None, such names are refused there.
        devices: with ``device="cpu"``, how many accelerators the program sees; None is one for each rank of the
            machine.
        of_adapters: the adapters' options that were chosen, by name; see ``of_adapter``.
    """

    timeout: float = 300.0
    check: bool | Literal["sites"] | None = None
    object_bytes: int = 1 << 30
    find_nan: bool = False
    objects: str = "any"
    transport: str = "auto"
    clock: str = "system"
    device: str | None = None
    devices: int | None = None
    of_adapters: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        for name, values in _CHOICES.items():
            if getattr(self, name) not in values:
                raise ArgumentValueError(f"option {name} is {getattr(self, name)!r}, should be one of {values}")
        if self.device not in (None, "cpu"):
            raise ArgumentValueError(f"option device is {self.device!r}, should be 'cpu' or None")
        if self.devices is not None and (type(self.devices) is not int or self.devices < 1):
            raise ArgumentValueError(f"option devices is {self.devices!r}, should be a positive int or None")
        if type(self.find_nan) is not bool:
            raise ArgumentValueError(f"option find_nan is {self.find_nan!r}, should be True or False")
        if type(self.object_bytes) is not int or self.object_bytes <= 0:
            raise ArgumentValueError(f"option object_bytes is {self.object_bytes!r}, should be a positive int")
        if not (self.check is None or type(self.check) is bool or self.check == "sites"):
            raise ArgumentValueError(f"option check is {self.check!r}, should be True, False, 'sites' or None")
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, int | float):
            raise ArgumentTypeError(f"option timeout is {self.timeout!r}, should be a positive number of seconds")
        if not self.timeout > 0:
            raise ArgumentValueError(f"option timeout is {self.timeout!r}, should be a positive number of seconds")


_current: ContextVar[Options | None] = ContextVar("collshim_options", default=None)


def get() -> Options:
    """Return the options in force here; the environment's if no block sets any."""
    return _current.get() or _from_environment()


def of_adapter(name: str) -> str:
    """Return the value in force here of an option in a framework's entry.

    Raises:
        ArgumentTypeError: no entry has it. ArgumentValueError: the environment's value is not one of its values.
    """
    values = _values(name)
    if values is None:
        raise ArgumentTypeError(f"option {name} is in no framework's entry")
    block = _current.get()
    chosen = () if block is None else (value for option, value in block.of_adapters if option == name)
    value = next(iter(chosen), None) or os.environ.get(f"COLLSHIM_{name.upper()}", values[0])
    return value if value in values else _require(name, value, values)


def service_thread(target: Callable[..., object], *args: Any, name: str) -> threading.Thread:
    """Make a thread of collshim's own, in which the defaults are in force whatever code starts it.

    In a free-threaded Python, a thread would otherwise inherit the options of the block of code that starts it.
    """
    return threading.Thread(target=Context().run, args=(target, *args), name=name, daemon=True)


@contextmanager
def options(**changes: Any) -> Iterator[Options]:
    """Change options for a block of code: the fields of ``Options``, and the adapters' options, by name.

    Raises:
        ArgumentTypeError: no such option. ArgumentValueError: no such value.
    """
    own = {name: changes.pop(name) for name in _FIELDS if name in changes}
    values = {name: _values(name) for name in changes}
    unknown = sorted(name for name, admitted in values.items() if admitted is None)
    if unknown:
        known = ", ".join(sorted([*_FIELDS, *_names_of_adapters()]))
        raise ArgumentTypeError(f"options {', '.join(unknown)} are unknown, should be among {known}")
    chosen = {name: _require(name, value, values[name] or ()) for name, value in changes.items()}
    before = get()
    with in_force(dataclasses.replace(before, **own, of_adapters=(*({**dict(before.of_adapters), **chosen}).items(),))):
        yield get()


@contextmanager
def in_force(chosen: Options) -> Iterator[None]:
    """Run a block of code under options taken from elsewhere."""
    token = _current.set(chosen)
    try:
        yield
    finally:
        _current.reset(token)


@cache
def _values(name: str) -> tuple[str, ...] | None:
    """Return the values of an adapter's option, the default first; None if no framework has it."""
    from collshim.frameworks import known  # inspects the installed packages, so not when the package is imported

    owners = (framework for framework in known() if name.startswith(f"{framework}_"))
    return next((options[name] for owner in owners if name in (options := known()[owner].options)), None)


def _names_of_adapters() -> Iterator[str]:
    from collshim.frameworks import FRAMEWORKS  # as above

    for entry in FRAMEWORKS.values():
        yield from entry.options


def _require(name: str, value: Any, values: tuple[str, ...]) -> str:
    if value not in values:
        raise ArgumentValueError(f"option {name} is {value!r}, should be one of {values}")
    return str(value)


block_options = _current.get
"""Returns the options that a block of code has set here, or None outside of any; cheap enough for every call."""


def _from_environment() -> Options:
    texts = {field: os.environ.get(f"COLLSHIM_{field.upper()}") for field in _READ}
    return Options(**{field: _READ[field](field, text) for field, text in texts.items() if text is not None})


def _number(kind: type[int] | type[float], expected: str, field: str, text: str) -> float:
    try:
        return kind(text)
    except ValueError as error:
        raise ArgumentValueError(f"COLLSHIM_{field.upper()} is {text!r}, should be {expected}") from error


def _check(field: str, text: str) -> bool | str:
    if text not in ("0", "1", "sites"):
        raise ArgumentValueError(f"COLLSHIM_{field.upper()} is {text!r}, should be 0, 1 or sites")
    return text == "1" or (text == "sites" and text)


def _switch(field: str, text: str) -> bool:
    if text not in ("0", "1"):
        raise ArgumentValueError(f"COLLSHIM_{field.upper()} is {text!r}, should be 0 or 1")
    return text == "1"


_READ: dict[str, Callable[[str, str], Any]] = {
    "transport": lambda field, text: text,
    "clock": lambda field, text: text,
    "timeout": partial(_number, float, "a number of seconds"),
    "check": _check,
    "object_bytes": partial(_number, int, "a number of bytes"),
    "find_nan": _switch,
    "objects": lambda field, text: text,
    "device": lambda field, text: text or None,
    "devices": partial(_number, int, "a number of devices"),
}
_FIELDS = tuple(_READ)
"""The engine's own options."""
