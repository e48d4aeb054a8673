"""Ends what the program dropped: the collector may find it in the middle of anything, where nothing may wait.

And frees torch's ProcessGroups. Their destructors wait for gloo's threads without the GIL, and a thread that comes back
from one while the interpreter ends would abort the process. So the end of the process waits for destructors that run in
other threads, and lets no more run there.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any


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


_DESTRUCTOR_SECONDS = 10.0
"""Seconds that the end of the process waits for destructors, which take milliseconds."""


def never_free(groups: Sequence[object]) -> None:
    """Let no destructor run, also when the interpreter takes down what it holds."""
    for group in groups:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))


def free(groups: list[Any]) -> None:
    """Drop these ProcessGroups; their destructors run here, but not in another thread once the process ends."""
    own = threading.get_ident()
    _FREEING.threads.add(own)  # first: the end of the process looks for it after it has set what is read next
    if _FREEING.is_over and threading.current_thread() is not threading.main_thread():
        never_free(groups)
    groups.clear()
    _FREEING.threads.discard(own)


def await_destructors() -> None:
    """The process ends: let the destructors that run in other threads end, and no more begin."""
    limit = time.monotonic() + _DESTRUCTOR_SECONDS
    _FREEING.is_over = True
    while _FREEING.run_elsewhere() and time.monotonic() < limit:
        time.sleep(0.002)


class _Freeing:
    """The threads in which destructors run; without a lock, which a forked process could find held."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.is_over = False

    def run_elsewhere(self) -> bool:
        """Whether one runs in another thread that lives."""
        living = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
        return bool(self.threads & living)


_FREEING = _Freeing()
