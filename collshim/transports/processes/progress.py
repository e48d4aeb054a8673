"""The progress thread: one per process, which starts agreed calls when no rank waits for them."""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import ClassVar

from collshim.transports.processes.group import Group

_LONGEST_STEP = 5.0
"""Seconds that a process which ends waits for a step that has begun."""


class ProgressThread:
    """The process's thread. It looks once a millisecond, for as long as there is something to look for."""

    _lock: ClassVar[threading.Lock] = threading.Lock()
    _watched: ClassVar[weakref.WeakSet[Group]] = weakref.WeakSet()
    _needed: ClassVar[threading.Event] = threading.Event()
    _looking: ClassVar[threading.Lock] = threading.Lock()
    _owner: ClassVar[int] = 0

    @classmethod
    def watch(cls, group: Group) -> None:
        """Look after this one until it has nothing more to come."""
        with cls._lock:
            cls._watched.add(group)
            if cls._owner != os.getpid():
                cls._owner = os.getpid()
                cls._needed, cls._looking = threading.Event(), threading.Lock()
                threading.Thread(target=cls._run, name="collshim-progress", daemon=True).start()
        cls._needed.set()

    @classmethod
    def stop(cls) -> None:
        """Look no more: a thread that is in the store's C++ while the interpreter ends would abort the process."""
        cls._looking.acquire(timeout=_LONGEST_STEP)  # and never released

    @classmethod
    def _run(cls) -> None:
        while True:
            cls._needed.wait()
            time.sleep(0.001)
            with cls._looking:
                cls._look()

    @classmethod
    def _look(cls) -> None:
        with cls._lock:
            watched = list(cls._watched)
            cls._watched.clear()  # before looking: who is to be watched again meanwhile must not be forgotten
        busy = [group for group in watched if _has_more(group)]
        with cls._lock:
            cls._watched.update(busy)
            if not cls._watched:
                cls._needed.clear()


def _has_more(group: Group) -> bool:
    """What one of them raises is reported as that of any thread, and does not end this one, which the others need."""
    try:
        return group.advance()
    except Exception as error:
        arguments = (type(error), error, error.__traceback__, threading.current_thread())
        threading.excepthook(threading.ExceptHookArgs(arguments))
        return False
