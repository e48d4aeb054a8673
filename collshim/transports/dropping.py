"""End groups that the program dropped. The garbage collector can run at any point, and must not wait for anything.

The destructors of torch's ProcessGroups, of their backends and of works release the GIL, and a thread that takes it
back while the interpreter is finalizing aborts the process. So the end of the process waits for the threads that run
such destructors, and blocks threads that are about to begin.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

from collshim.settings import service_thread


class DropThread:
    """A thread that takes functions from a queue and runs them; inside the collector only a queue is safe to use."""

    def __init__(self) -> None:
        self._dropped: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._owner = 0

    def start(self) -> None:
        """Start the thread of this process, if it is not running yet."""
        if self._owner != os.getpid():
            self._owner, self._dropped = os.getpid(), SimpleQueue()
            service_thread(self._run, name="collshim-dropped").start()

    def drop(self, end: Callable[[], None]) -> None:
        """Call ``end`` soon, in the drop thread."""
        self._dropped.put(end)

    def _run(self) -> None:
        while True:
            ends = [self._dropped.get()]
            _FREEING.enter()
            ending_thread(ends).start()
            _FREEING.leave()


DROPPED = DropThread()
"""Ends the groups that the program dropped."""


_DESTRUCTOR_SECONDS = 10.0
"""How many seconds the end of the process waits for destructors, which normally take milliseconds."""


def never_free(
    groups: Sequence[object],
    keep: Callable[[Any], object] = ctypes.pythonapi.Py_IncRef,
    as_object: Callable[[object], Any] = ctypes.py_object,
) -> None:
    """Prevent these objects' destructors from ever running, even when the interpreter is finalized."""
    for group in groups:
        keep(as_object(group))


def ending_thread(ends: list[Callable[[], None]]) -> threading.Thread:
    """Make a thread that calls the only function in ``ends`` and frees it; the function sleeps only by ``pause``."""
    return service_thread(_end, ends, name="collshim-ending")


def _end(ends: list[Callable[[], None]]) -> None:
    _FREEING.enter()
    try:
        ends.pop()()
    finally:
        _FREEING.leave()


def pause(seconds: float) -> None:
    """Sleep in a thread of ``ending_thread``; it never returns if the process begins to end meanwhile."""
    _FREEING.leave()
    time.sleep(seconds)
    _FREEING.enter()


def free(groups: list[Any], before: Callable[[], None] = lambda: None) -> None:
    """Call ``before`` and drop these ProcessGroups and backends in turn, whose destructors run here.

    If the process ends, and this is not its main thread, do neither, and prevent the destructors from ever running.
    """
    own = threading.get_ident()
    is_ending = own in _FREEING.threads  # an ``ending_thread``
    _FREEING.threads.add(own)  # before reading is_over: await_destructors sets is_over before it reads the threads
    try:
        if not is_ending and _FREEING.is_over and threading.current_thread() is not threading.main_thread():
            never_free(groups)
        else:
            before()
    finally:
        while groups:
            del groups[0]
        if not is_ending:
            _FREEING.threads.discard(own)


def await_destructors() -> None:
    """Wait at the end of the process until destructors in other threads are over, and prevent new ones."""
    limit = time.monotonic() + _DESTRUCTOR_SECONDS
    _FREEING.is_over = True
    while _FREEING.run_elsewhere() and time.monotonic() < limit:
        time.sleep(0.002)


class _Freeing:
    """The threads that free objects of torch. It has no lock: a forked process could inherit it locked."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.is_over = False

    def enter(self) -> None:
        """Make the end of the process wait for this thread; if the end has begun, never return."""
        own = threading.get_ident()
        self.threads.add(own)  # before reading is_over, as in ``free``
        while self.is_over and threading.current_thread() is not threading.main_thread():
            self.threads.discard(own)
            time.sleep(_DESTRUCTOR_SECONDS)

    def leave(self) -> None:
        """Let the end of the process no longer wait for this thread."""
        self.threads.discard(threading.get_ident())

    def run_elsewhere(self) -> bool:
        """Return whether another thread that is alive frees objects."""
        living = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
        return bool(self.threads & living)


_FREEING = _Freeing()
