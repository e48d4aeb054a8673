"""The fault of a trial's victim, and its moment: on its own rank, during its stream."""

from __future__ import annotations

import asyncio
import builtins
import ctypes
import os
import random
import resource
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from collshim.transports.waiting import FIRST_SLICE
from tests.robustness.injection.points import Point
from tests.robustness.injection.stream import Step
from tests.robustness.injection.trial import Trial

TEXT = "injected"
_APART = 0.25
"""Seconds from a signal until the arrival of the ranks that its victim waits for."""

_AROUND = 0.0015
"""Seconds around the end of a slice at which a rank arrives."""

_LAST = 0.1
"""Seconds by which a rank comes after the others."""

_SOON = 0.05
"""Seconds within which a fault comes at any time."""


class InjectedError(Exception):
    """An error of the user's own."""


class InjectedRuntimeError(RuntimeError):
    """An error that could be mistaken for torch's."""


class InjectedInterrupt(BaseException):
    """Not an ``Exception``, like KeyboardInterrupt."""


_KINDS: tuple[type[BaseException], ...] = (InjectedError, InjectedRuntimeError, InjectedInterrupt)
_OWN = {kind.__name__: kind for kind in (*_KINDS, asyncio.CancelledError)}


def exception(name: str) -> type[BaseException]:
    """Return the exception class of this name."""
    found: type[BaseException] = _OWN.get(name) or getattr(builtins, name)
    return found


class Deed:
    """The fault of a trial on one of its ranks; the other ranks do nothing, but may be late if requested.

    Args:
        report: tells the supervisor that the fault happens now.
    """

    def __init__(self, trial: Trial, rank: int, report: Callable[[], None]) -> None:
        self.trial = trial
        self.rank = rank
        self.is_victim = rank == trial.victim
        self._report = report
        self._guard = threading.RLock()
        self._is_over = False
        self._thread = threading.current_thread()
        self._is_armed = trial.at == 0 and trial.fault.subject == "world"
        self._passed = 0
        self._delays = random.Random(f"{trial.seed} {rank}")
        if self.is_victim and trial.point is not None:
            self._patch(trial.point)

    def before(self, number: int, step: Step) -> None:
        """Act before the rank posts the calls of a step."""
        trial, kind = self.trial, self.trial.kind
        if kind == "random delays" and self._delays.random() < 0.5:
            time.sleep(self._delays.uniform(0.0, trial.seconds))
        if trial.fault.subject == "edge" and trial.at <= number < trial.at + 6 and self.is_victim:
            self._report()
            time.sleep(FIRST_SLICE + self._delays.uniform(-_AROUND, _AROUND))
        if self.is_victim and trial.point is not None and trial.at <= number < trial.at + 3:
            time.sleep(_LAST if trial.transport == "threads" else 0.0)  # it arrives last, and computes for all
            self._is_armed = True
        if number != trial.at:
            return
        if trial.fault.waits and not self.is_victim:
            time.sleep(trial.seconds + _APART)
        if self.is_victim and self._is_timed("before"):
            self._happen()

    def between(self, number: int) -> None:
        """Act after the rank posted the calls of a step, before it waits for them."""
        if number == self.trial.at and self.is_victim:
            if self.trial.fault.waits:
                self._alarm()
            elif self._is_timed("between"):
                self._happen()

    def wait(self, finish: Callable[[], None]) -> None:
        """Call ``finish``, and once more if the fault is an exception that its user catches."""
        if not (self.is_victim and self.trial.kind.endswith("caught")):
            finish()
            return
        try:
            finish()
        except BaseException as error:
            if not is_injected(error, self.trial.detail):
                raise
            finish()

    def over(self) -> None:
        """Stop all faults."""
        if self.trial.fault.waits and self.is_victim:
            signal.setitimer(signal.ITIMER_REAL, 0)
        with self._guard:
            self._is_over = True
        str(self)  # an exception that was just thrown is raised here

    def _is_timed(self, moment: str) -> bool:
        trial = self.trial
        if (
            trial.point is not None
            or trial.fault.subject == "edge"
            or trial.fault.waits
            or trial.kind == "random delays"
        ):
            return False
        return trial.moment == moment or (trial.moment, moment) == ("anywhere", "before")

    def _happen(self) -> None:
        if self.trial.moment != "anywhere":
            self._do()
            return
        # Kept: a free-threaded Python may free a dropped thread here, and ignores an exception thrown meanwhile.
        self._timer = threading.Timer(self._delays.uniform(0.0, _SOON), self._do)
        self._timer.daemon = True
        self._timer.start()

    def _do(self) -> None:
        """Carry out the trial's detail, in this thread or, if it is a signal, in this process."""
        with self._guard:
            if self._is_over:
                return
            self._report()
            detail = self.trial.detail
            if detail.startswith("SIG"):
                os.kill(os.getpid(), getattr(signal, detail))
            elif detail == "os._exit":
                os._exit(9)
            elif detail.isdigit():
                _leave_descriptors(int(detail))
            elif self.trial.kind == "interrupted rank":
                os.kill(os.getpid(), signal.SIGINT)
            elif self.trial.kind == "exception thrown into a thread":
                thread, kind = ctypes.c_ulong(self._thread.ident or 0), ctypes.py_object(exception(detail))
                ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, kind)
                return
        if detail == "sleeps":
            time.sleep(self.trial.seconds)
        elif hasattr(builtins, detail) or detail in _OWN:
            self._raise()

    def _raise(self) -> None:
        if self.trial.kind not in ("interrupted rank", "exception thrown into a thread"):
            raise exception(self.trial.detail)(TEXT)

    def _alarm(self) -> None:
        def raises(number: int, frame: FrameType | None) -> None:
            self._report()
            raise exception(self.trial.detail)(TEXT)

        signal.signal(signal.SIGALRM, raises)
        signal.setitimer(signal.ITIMER_REAL, self.trial.seconds)

    def _patch(self, point: Point) -> None:
        holder = point.holder()
        original = getattr(holder, point.name)

        def stopping(*arguments: Any, **named: Any) -> Any:
            if point.when == "before":
                self._strike(point)
            result = original(*arguments, **named)
            if point.when == "after":
                self._strike(point)
            return result

        setattr(holder, point.name, stopping)

    def _strike(self, point: Point) -> None:
        if self.trial.transport == "threads" and threading.current_thread() is not self._thread:
            return
        if self._is_armed:
            self._passed += 1
            if self._passed == point.time:
                self._do()


def is_injected(error: BaseException, detail: str) -> bool:
    """Return whether it is the injected exception itself."""
    return type(error).__name__ == detail and str(error).strip("'") in ("", TEXT)


def _leave_descriptors(free: int) -> None:
    used = max(map(int, os.listdir("/proc/self/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 1 + free, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
