"""Who records on this thread, which is this rank's; known to whatever computes, which needs no graph otherwise."""

from __future__ import annotations

import threading
from typing import Any


class _Recording(threading.local):
    """The managers that record, oldest first."""

    def __init__(self) -> None:
        self.managers: list[Any] = []


recording = _Recording()


def records() -> bool:
    """Whether any manager records on this rank."""
    return bool(recording.managers)
