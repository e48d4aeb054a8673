"""Permit the other ranks to read this process's memory under Yama, a security module of Linux.

If the setting ``kernel.yama.ptrace_scope`` is 1, the default of Ubuntu and others, a process can read only the memory
of its descendants, and of processes that permit it. Ranks are rarely each other's descendants. If the setting is more
than 1, no process can permit it.
"""

from __future__ import annotations

import ctypes
from contextlib import suppress
from pathlib import Path
from typing import Any

_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_ASKS = 1
_SET_TRACER = 0x59616D61
_ANY = ctypes.c_ulong(-1)


def permit_reads() -> None:
    """Permit all processes of the same user to read this process's memory, if the system asks for that.

    The permission lasts until the process ends. It is not limited to the ranks' common ancestor and its descendants,
    because it would end with that process, and a script that starts ranks may end before them.
    """
    if _scope() == _ASKS:
        _prctl(_SET_TRACER, _ANY, *[ctypes.c_ulong(0)] * 3)  # if this fails, so does the ranks' attempt to read


def refusal() -> str:
    """Return why no rank can read another's memory; empty if Yama does not forbid it."""
    scope = _scope()
    return f"kernel.yama.ptrace_scope is {scope}" if scope > _ASKS else ""


def _prctl(*arguments: Any) -> None:
    ctypes.CDLL(None).prctl(*arguments)  # not every system has it


def _scope() -> int:
    """Return the setting; 0 if the system does not have Yama."""
    with suppress(OSError, ValueError):
        return int(_SCOPE.read_text(encoding="ascii"))
    return 0
