"""The clock for the deadlines of tests and of ``launch``, which stops while a debugger is open on a rank."""

from __future__ import annotations

import threading
import time


class Pausing:
    """A clock like ``time.monotonic`` that can be held."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held = 0
        self._since = 0.0
        self._lost = 0.0

    def now(self) -> float:
        """Return the time in seconds."""
        with self._lock:
            return (self._since if self._held else time.monotonic()) - self._lost

    def hold(self) -> None:
        """Stop the clock until ``go_on`` has been called as often as ``hold``."""
        with self._lock:
            if not self._held:
                self._since = time.monotonic()
            self._held += 1

    def go_on(self) -> None:
        """Undo one ``hold``; after the last, the clock runs again."""
        with self._lock:
            self._held -= 1
            if not self._held:
                self._lost += time.monotonic() - self._since


PAUSING = Pausing()
