"""A clock for ranks that are threads: if all of them are blocked, the next deadline passes immediately."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from collshim.transports.waiting import watch

_SLICE = 0.01
"""After how many seconds a waiting rank looks at the clock."""


class _Sleep:
    """The sleep of a rank, by this clock."""


class JumpingClock:
    """The time of one world, by which its deadlines pass.

    It runs like the system's clock, and jumps to the earliest deadline as soon as every rank waits for a call that
    cannot start, or sleeps by this clock, because nothing else could happen before that deadline. A rank that computes,
    or sleeps by the system's clock, is not blocked. If a rank has left, the clock jumps only if all other ranks sleep,
    since ranks that wait for it are soon informed.
    """

    def __init__(self, size: int, left: Mapping[int, str]) -> None:
        """Make a clock; ``left`` are the ranks that make no further calls."""
        self._size = size
        self._left = left
        self._ahead = 0.0
        self._lock = threading.Lock()
        self._waits: dict[Any, tuple[int, float | None]] = {}

    def now(self) -> float:
        """Return the time in seconds, like ``time.monotonic``."""
        return time.monotonic() + self._ahead

    def wait(self, arrival: Any, rank: int, over: Callable[[float], bool], timeout: float | None) -> None:
        """Wait on global ``rank`` for an arrival's exchange; see ``watch``."""
        limit = None if timeout is None else self.now() + timeout
        with self._lock:
            self._waits[arrival] = rank, limit
            self._jump()
        try:
            watch(arrival, over, limit, first=_SLICE, later=_SLICE, now=self.now)
        finally:
            with self._lock:
                del self._waits[arrival]

    def sleep(self, rank: int, seconds: float) -> None:
        """Block global ``rank`` until that many seconds have passed."""
        limit, sleep = self.now() + seconds, _Sleep()
        with self._lock:
            self._waits[sleep] = rank, limit
        try:
            while True:
                with self._lock:
                    self._jump()
                if (left := limit - self.now()) <= 0:
                    return
                time.sleep(min(left, _SLICE))
        finally:
            with self._lock:
                del self._waits[sleep]

    def _jump(self) -> None:
        """Go to the earliest deadline if all ranks are blocked."""
        asleep = {rank for wait, (rank, _) in self._waits.items() if isinstance(wait, _Sleep)}
        exchanges = {rank: wait.exchange for wait, (rank, _) in self._waits.items() if not isinstance(wait, _Sleep)}
        stuck = {rank for rank, exchange in exchanges.items() if exchange.missing() or exchange.candidates()}
        limits = [limit for _, limit in self._waits.values() if limit is not None]
        can_jump = len(asleep | self._left.keys()) == self._size if self._left else len(asleep | stuck) == self._size
        if limits and can_jump:
            self._ahead += max(0.0, min(limits) - self.now())
