"""The lateness of the machine, which excuses the same lateness of a rank."""

from __future__ import annotations

import threading
import time

_PAUSE = 0.02


class Heartbeat:
    """A thread that sleeps and wakes while a block of code runs.

    Attributes:
        lag: the most seconds that it woke too late.
    """

    def __init__(self) -> None:
        self.lag = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        before = time.monotonic()
        while not self._over.wait(_PAUSE):
            now = time.monotonic()
            self.lag = max(self.lag, now - before - _PAUSE)
            before = now
