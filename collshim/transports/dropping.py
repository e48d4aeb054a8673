"""Ends what the program dropped. The garbage collector may run at any point, and must not wait for anything.

This module also frees torch's ProcessGroups. Their destructors wait for gloo's threads without the GIL, and a thread
that returns from one while the interpreter is finalizing would abort the process. So the end of the process waits for
destructors that run in other threads, and prevents new ones from running there.
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
    """A thread that takes functions from a queue and runs them; inside the collector it is only safe to use a queue."""

    def __init__(self) -> None:
        self._dropped: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._owner = 0

    def start(self) -> None:
        """Start the thread of this process, if it is not running yet."""
        if self._owner != os.getpid():
            self._owner, self._dropped = os.getpid(), SimpleQueue()
            threading.Thread(target=self._run, name="collshim-dropped", daemon=True).start()

    def drop(self, end: Callable[[], None]) -> None:
        """Call ``end`` soon, in its own thread."""
        self._dropped.put(end)

    def _run(self) -> None:
        while True:
            threading.Thread(target=self._dropped.get(), name="collshim-ending", daemon=True).start()


DROPPED = DropThread()
"""Ends the groups that the program dropped."""


_DESTRUCTOR_SECONDS = 10.0
"""Seconds that the end of the process waits for destructors, which normally take milliseconds."""


def never_free(groups: Sequence[object]) -> None:
    """Prevent these objects' destructors from ever running, even when the interpreter is finalized."""
    for group in groups:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))


def free(groups: list[Any], before: Callable[[], None] = lambda: None) -> None:
    """Call ``before`` and drop these ProcessGroups, whose destructors run here.

    If the process ends, and this is not its main thread, do neither, and prevent the destructors from ever running.
    """
    own = threading.get_ident()
    _FREEING.threads.add(own)  # before reading is_over: await_destructors sets is_over before it reads the threads
    try:
        if _FREEING.is_over and threading.current_thread() is not threading.main_thread():
            never_free(groups)
        else:
            before()
    finally:
        groups.clear()
        _FREEING.threads.discard(own)


def await_destructors() -> None:
    """Wait at the end of the process until destructors in other threads are over, and prevent new ones."""
    limit = time.monotonic() + _DESTRUCTOR_SECONDS
    _FREEING.is_over = True
    while _FREEING.run_elsewhere() and time.monotonic() < limit:
        time.sleep(0.002)


class _Freeing:
    """The threads that run destructors. It has no lock: a forked process could inherit it locked."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.is_over = False

    def run_elsewhere(self) -> bool:
        """Return whether a destructor runs in another thread that is alive."""
        living = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
        return bool(self.threads & living)


_FREEING = _Freeing()
