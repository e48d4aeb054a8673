"""The gradient managers that record on this rank's thread; if there are none, computations need no graph."""

from __future__ import annotations

import threading
from typing import Any


class _Recording(threading.local):
    """The managers that record, oldest first, and the manager whose backward pass runs."""

    def __init__(self) -> None:
        self.managers: list[Any] = []
        self.backwarding: Any = None


recording = _Recording()


def records() -> bool:
    """Return whether a manager records on this rank."""
    return bool(recording.managers)


def is_nested() -> bool:
    """Return whether managers are nested: the outer manager then also records the inner one's backward pass."""
    return len({manager._level for manager in recording.managers}) > 1
