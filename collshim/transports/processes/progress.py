"""Progress threads: each looks after what is to go on though no rank waits for it."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, MutableSet
from typing import Generic, TypeVar

from collshim.transports.processes.group import Group

_LONGEST_STEP = 5.0
"""Seconds that a process which ends waits for a step that has begun."""

T = TypeVar("T")


class ProgressThread(Generic[T]):
    """A thread of the process that looks after things, for as long as one of them has more to come.

    Args:
        name: the thread's.
        pause: seconds between two looks.
        look: takes the next step of one thing, without waiting; whether there is more to come.
        watched: where those that have more to come are kept; a weak set lets the others go.
        begin: what the thread does first.
    """

    def __init__(
        self,
        name: str,
        pause: float,
        look: Callable[[T], bool],
        watched: MutableSet[T],
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = name
        self._pause = pause
        self._look = look
        self._begin = begin
        self._watched = watched
        self._lock = threading.Lock()
        self._needed = threading.Event()
        self._looking = threading.Lock()
        self._owner = 0

    def watch(self, thing: T) -> None:
        """Look after this one until it has nothing more to come."""
        if thing in self._watched and self._owner == os.getpid():
            return
        with self._lock:
            self._watched.add(thing)
            if self._owner != os.getpid():
                self._owner = os.getpid()
                self._needed, self._looking = threading.Event(), threading.Lock()
                threading.Thread(target=self._run, name=self._name, daemon=True).start()
        self._needed.set()

    def stop(self) -> None:
        """Look no more: a thread that is in the store's C++ while the interpreter ends would abort the process."""
        self._looking.acquire(timeout=_LONGEST_STEP)  # and never released

    def _run(self) -> None:
        self._begin()
        while True:
            self._needed.wait()
            time.sleep(self._pause)
            with self._looking:
                self._look_at_all()

    def _look_at_all(self) -> None:
        with self._lock:
            watched = list(self._watched)
            self._watched.clear()  # before looking: who is to be watched again meanwhile must not be forgotten
        busy = [thing for thing in watched if self._has_more(thing)]
        with self._lock:
            for thing in busy:
                self._watched.add(thing)
            if not self._watched:
                self._needed.clear()

    def _has_more(self, thing: T) -> bool:
        """What one of them raises is reported as that of any thread, and does not end this one, which others need."""
        try:
            return self._look(thing)
        except Exception as error:
            arguments = (type(error), error, error.__traceback__, threading.current_thread())
            threading.excepthook(threading.ExceptHookArgs(arguments))
            return False


PROGRESS: ProgressThread[Group] = ProgressThread(
    "collshim-progress", 0.001, lambda group: group.advance(), weakref.WeakSet()
)
"""Starts agreed calls when no rank waits for them."""

LEFTOVERS: ProgressThread[Group] = ProgressThread(
    "collshim-leftovers", 0.25, lambda group: group.advance_leftovers(), weakref.WeakSet()
)
"""Completes small calls that nobody waits for, perhaps since the program let go of their communicator."""
