"""The managers that record on this thread, which is one rank's; without any, computations need no graph."""

from __future__ import annotations

import threading
from typing import Any


class _Recording(threading.local):
    """The managers that record, oldest first, and the one whose backward runs."""

    def __init__(self) -> None:
        self.managers: list[Any] = []
        self.backwarding: Any = None


recording = _Recording()


def records() -> bool:
    """Return whether any manager records on this rank."""
    return bool(recording.managers)


def is_nested() -> bool:
    """Return whether a manager records inside another, which records the backward of the inner one too."""
    return len({manager._level for manager in recording.managers}) > 1
