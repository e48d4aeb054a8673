"""Options: what an adapter's user may choose, for a block of code, and where the defaults come from.

    with collshim.options(mindspore_gather="stacked"):
        tensor, handle = comm_func.all_gather_into_tensor(x)

Defaults come from the environment: ``COLLSHIM_MINDSPORE_GATHER``, ``COLLSHIM_TIMEOUT``, ``COLLSHIM_CHECK``.
Options change what this rank sees, never what it posts, so ranks may differ.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from collshim.errors import ArgumentTypeError, ArgumentValueError

_GATHERS = ("concatenated", "stacked")


@dataclasses.dataclass(frozen=True)
class Options:
    """The options in force.

    Attributes:
        mindspore_gather: what MindSpore's ``all_gather_into_tensor`` returns: "concatenated" along dimension 0, as the
            implementation does, or "stacked", ``(N, *shape)``, as its documentation says.
        timeout: seconds that a wait may take; read when a communicator is made.
        check: whether ranks compare their calls before data moves; None is on between threads and over gloo, off
            where a world is made for CUDA.
    """

    mindspore_gather: str = "concatenated"
    timeout: float = 300.0
    check: bool | None = None

    def __post_init__(self) -> None:
        if self.mindspore_gather not in _GATHERS:
            raise ArgumentValueError(
                f"option mindspore_gather is {self.mindspore_gather!r}, should be one of {_GATHERS}"
            )
        if self.check not in (None, True, False) or isinstance(self.check, float) or type(self.check) is int:
            raise ArgumentValueError(f"option check is {self.check!r}, should be True, False or None")
        if isinstance(self.timeout, bool) or not isinstance(self.timeout, int | float):
            raise ArgumentTypeError(f"option timeout is {self.timeout!r}, should be a positive number of seconds")
        if not self.timeout > 0:
            raise ArgumentValueError(f"option timeout is {self.timeout!r}, should be a positive number of seconds")


_current: ContextVar[Options | None] = ContextVar("collshim_options", default=None)


def get() -> Options:
    """The options in force here; the environment's where no block sets any."""
    return _current.get() or _from_environment()


@contextmanager
def options(**changes: Any) -> Iterator[Options]:
    """Change options for a block of code; the fields of ``Options`` by name.

    Raises:
        ArgumentTypeError: no such option. ArgumentValueError: no such value.
    """
    known = {field.name for field in dataclasses.fields(Options)}
    unknown = sorted(set(changes) - known)
    if unknown:
        raise ArgumentTypeError(f"options {', '.join(unknown)} are unknown, should be among {', '.join(sorted(known))}")
    token = _current.set(dataclasses.replace(get(), **changes))
    try:
        yield get()
    finally:
        _current.reset(token)


def _from_environment() -> Options:
    found: dict[str, Any] = {}
    if "COLLSHIM_MINDSPORE_GATHER" in os.environ:
        found["mindspore_gather"] = os.environ["COLLSHIM_MINDSPORE_GATHER"]
    if "COLLSHIM_TIMEOUT" in os.environ:
        found["timeout"] = _seconds(os.environ["COLLSHIM_TIMEOUT"])
    if "COLLSHIM_CHECK" in os.environ:
        found["check"] = _switch(os.environ["COLLSHIM_CHECK"])
    return Options(**found)


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise ArgumentValueError(f"COLLSHIM_TIMEOUT is {text!r}, should be a number of seconds") from error


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ArgumentValueError(f"COLLSHIM_CHECK is {text!r}, should be 0 or 1")
    return text == "1"
