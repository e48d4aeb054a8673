"""Forked processes whose results are collected within a deadline, and of which none is left."""

from __future__ import annotations

import ctypes
import os
import pickle
import select
import signal
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

SECONDS = 60.0
_PR_SET_PDEATHSIG = 1


class Child:
    """A forked process that calls a function; used in a ``with`` statement, at whose end it is killed if it still runs.

    Attributes:
        pid: its process id.
    """

    def __init__(self, call: Callable[[], Any]) -> None:
        self._ours, theirs = os.pipe()
        parent = os.getpid()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of the threads of this process the child needs none
            self.pid = os.fork()
        if self.pid == 0:
            _run(call, theirs, parent)
        os.close(theirs)
        self._is_reaped = False

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        os.close(self._ours)

    def kill(self) -> None:
        """End it by SIGKILL, and wait until it is gone."""
        if not self._is_reaped:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._is_reaped = True

    def result(self, seconds: float = SECONDS) -> Any:
        """Wait for the result of the function; raise AssertionError if it failed, or if the time passes first."""
        limit, text = time.monotonic() + seconds, b""
        while piece := _read(self._ours, limit - time.monotonic()):
            text += piece
        assert text, f"process {self.pid} ended without a result"
        failure, value = pickle.loads(text)
        assert not failure, failure
        return value


def _read(file: int, seconds: float) -> bytes:
    ready, _, _ = select.select([file], [], [], max(0.0, seconds))
    assert ready, "the deadline of a process passed"
    return os.read(file, 1 << 16)


def _run(call: Callable[[], Any], out: int, parent: int) -> NoReturn:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        outcome = "", call()
    except BaseException:
        outcome = traceback.format_exc(), None
    with os.fdopen(out, "wb") as pipe:
        pickle.dump(outcome, pipe)
    os._exit(0)


def run_all(calls: Sequence[Callable[[], Any]], seconds: float = SECONDS) -> list[Any]:
    """Call each function in a process of its own, at the same time; return their results."""
    limit = time.monotonic() + seconds
    children = [Child(call) for call in calls]
    try:
        return [child.result(limit - time.monotonic()) for child in children]
    finally:
        for child in children:
            child.__exit__()
