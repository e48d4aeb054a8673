"""Threads that complete a group's calls for their futures, so that callbacks run as soon as a call is complete.

Gloo completes its futures on the threads that carry out its calls. The engine has no such threads: a call is complete
only after a wait for it. The threads here wait for the calls that have futures, one after the other.
"""

from __future__ import annotations

import atexit
import os
import threading
import weakref
from collections import deque
from functools import cache
from typing import Protocol

from collshim.settings import service_thread

_IDLE = 1.0
"""The seconds that a thread without work waits for more work before it ends."""
_LAST_WAIT = 5.0
"""The seconds that an ending process waits for each thread."""


class Job(Protocol):
    """A call with a future."""

    def wait(self) -> None:
        """Wait until the call is complete, or has failed."""
        ...

    def fulfil(self) -> None:
        """Complete the future, which runs its callbacks."""
        ...


class Completions:
    """The calls of a group that have futures, and the threads that complete them.

    One thread at a time waits for a call. Before this thread runs the callbacks, it leaves the next wait to a second
    thread, because a callback may itself wait for a later call of the group. So there is one more thread than there are
    callbacks that run at the same time: usually two threads, however many futures there are.
    """

    def __init__(self) -> None:
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._waits = self._ends = False
        self._spare = 0
        self._threads: set[threading.Thread] = set()

    def add(self, job: Job) -> None:
        """Complete a call, after those that were added before it."""
        _end_before_the_interpreter()
        with self._changed:
            self._jobs.append(job)
            self._let_one_wait()

    def end(self, seconds: float) -> None:
        """End the threads once nothing is left to complete; wait at most that long for each thread."""
        with self._changed:
            self._ends = True
            self._changed.notify_all()
            threads = [*self._threads]
        for thread in threads:
            thread.join(seconds)

    def _let_one_wait(self) -> None:
        """Let a thread wait for the next call, unless one already does; the caller holds the lock."""
        if self._waits or not self._jobs:
            return
        if self._spare:
            self._changed.notify()
            return
        thread = service_thread(self._run, name="collshim-futures")
        self._spare += 1
        self._threads.add(thread)
        _all.add(self)
        thread.start()

    def _run(self) -> None:
        while (job := self._next()) is not None:
            job.wait()
            with self._changed:
                self._waits = False
                self._let_one_wait()
            try:
                job.fulfil()
            finally:
                del job  # it holds the call's tensors
                with self._changed:
                    self._spare += 1

    def _next(self) -> Job | None:
        """Return the next call, once no other thread waits; None if none is added for a while."""
        with self._changed:
            is_idle = False
            while self._waits or not self._jobs:
                if not self._jobs and (is_idle or self._ends):
                    self._spare -= 1
                    self._threads.discard(threading.current_thread())
                    return None
                is_idle = not self._changed.wait(_IDLE)
            self._spare -= 1
            self._waits = True
            return self._jobs.popleft()


_all: weakref.WeakSet[Completions] = weakref.WeakSet()


@cache
def _end_before_the_interpreter() -> None:
    """End the threads before the interpreter does: a thread that waits in C++ by then would abort the process."""
    atexit.register(_end_all, os.getpid())


def _end_all(owner: int) -> None:
    """End all threads; a forked process has none of them, and may have inherited their locks."""
    if os.getpid() == owner:
        for completions in list(_all):
            completions.end(_LAST_WAIT)
