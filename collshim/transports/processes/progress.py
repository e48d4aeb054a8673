"""Progress threads: each advances objects that must go on even if no rank waits for them."""

from __future__ import annotations

import math
import os
import threading
import time
import weakref
from collections.abc import Callable, MutableSet
from typing import Generic, TypeVar

from collshim.settings import service_thread
from collshim.transports.processes.group import Group
from collshim.transports.waiting import pause

_LONGEST_STEP = 5.0
"""How many seconds an ending process waits for a step that has begun."""

_LONGEST_PAUSE = 0.02

T = TypeVar("T")


class ProgressThread(Generic[T]):
    """A thread of the process that advances objects for as long as any of them has more to do.

    Args:
        name: the thread's name.
        pause: the least number of seconds between two rounds.
        step: takes the next step of one object, without waiting; returns whether there is more to do.
        watched: holds the objects with more to do; a weak set does not keep them alive.
        begin: called first in the thread.
        moved: returns when an object last moved on, in seconds of ``time.monotonic``. If it is given, the pauses grow
            with the time since then, until ``watch`` is called.
    """

    def __init__(
        self,
        name: str,
        pause: float,
        step: Callable[[T], bool],
        watched: MutableSet[T],
        begin: Callable[[], None] = lambda: None,
        moved: Callable[[T], float] = lambda _: math.inf,
    ) -> None:
        self._name = name
        self._pause = pause
        self._step = step
        self._begin = begin
        self._moved = moved
        self._watched = watched
        self._lock = threading.Lock()
        self._needed = threading.Event()
        self._asked = threading.Event()
        self._latest = 0.0
        self._stepping = threading.Lock()
        self._owner = 0

    def watch(self, thing: T) -> None:
        """Advance this object until it has nothing more to do."""
        if thing not in self._watched or self._owner != os.getpid():
            with self._lock:
                self._watched.add(thing)
                if self._owner != os.getpid():
                    self._owner = os.getpid()
                    self._needed, self._asked, self._stepping = threading.Event(), threading.Event(), threading.Lock()
                    service_thread(self._run, name=self._name).start()
            self._needed.set()
        if not self._asked.is_set():
            self._asked.set()

    def stop(self) -> None:
        """Stop all steps: a thread inside the store's C++ code while the interpreter ends would abort the process."""
        self._stepping.acquire(timeout=_LONGEST_STEP)  # and never released

    def _run(self) -> None:
        self._begin()
        while True:
            self._needed.wait()
            time.sleep(self._pause)
            self._rest()
            with self._stepping:
                self._step_all()

    def _rest(self) -> None:
        """Sleep on if nothing has moved for long, so that a call whose other ranks are late takes no processor time."""
        if self._asked.is_set():
            self._asked.clear()
            self._latest = time.monotonic()
        longer = pause(time.monotonic() - self._latest, 0.0, _LONGEST_PAUSE) - self._pause
        if longer > 0:
            self._asked.wait(longer)

    def _step_all(self) -> None:
        with self._lock:
            watched = list(self._watched)
            self._watched.clear()  # before the steps: an object might ask to be watched again meanwhile
        busy = [thing for thing in watched if self._has_more(thing)]
        self._latest = max([self._latest, *map(self._moved, busy)])
        with self._lock:
            for thing in busy:
                self._watched.add(thing)
            if not self._watched:
                self._needed.clear()

    def _has_more(self, thing: T) -> bool:
        """Step one object. Its error is reported like any thread's, and does not end this thread, which others need."""
        try:
            return self._step(thing)
        except Exception as error:
            arguments = (type(error), error, error.__traceback__, threading.current_thread())
            threading.excepthook(threading.ExceptHookArgs(arguments))
            return False


PROGRESS: ProgressThread[Group] = ProgressThread(
    "collshim-progress",
    0.001,
    lambda group: group.advance(),
    weakref.WeakSet(),
    moved=lambda group: group.last_step,
)
"""Starts agreed calls if no rank waits for them."""

LEFTOVERS: ProgressThread[Group] = ProgressThread(
    "collshim-leftovers", 0.25, lambda group: group.advance_leftovers(), weakref.WeakSet()
)
"""Completes small calls that no one waits for, perhaps because the program dropped their communicator."""
