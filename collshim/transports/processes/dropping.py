"""Ends what the program dropped: the collector may find it in the middle of anything, where nothing may wait."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from queue import SimpleQueue


class DropThread:
    """A thread that takes from a queue what is to be ended: nothing but a queue may be used within the collector."""

    def __init__(self) -> None:
        self._dropped: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._owner = 0

    def start(self) -> None:
        """Start the thread of this process, if it does not run yet."""
        if self._owner != os.getpid():
            self._owner, self._dropped = os.getpid(), SimpleQueue()
            threading.Thread(target=self._run, name="collshim-dropped", daemon=True).start()

    def drop(self, end: Callable[[], None]) -> None:
        """Call ``end`` soon, in a thread of its own."""
        self._dropped.put(end)

    def _run(self) -> None:
        while True:
            threading.Thread(target=self._dropped.get(), name="collshim-ending", daemon=True).start()


DROPPED = DropThread()
"""Ends the groups that the program dropped."""
