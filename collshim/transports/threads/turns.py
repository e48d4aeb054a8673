"""The threads of a world run one at a time: each until it waits for a call, then the next one that can go on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def _at_once() -> bool:
    return True


class Turns:
    """Which rank's thread runs. A turn goes to the lowest rank that does not wait for a call any more.

    Where they have ended, all threads run at the same time.
    """

    def __init__(self, size: int) -> None:
        self._changed = threading.Condition()
        self._can_go_on: dict[int, Callable[[], bool]] = dict.fromkeys(range(size), _at_once)
        self._running: int | None = None
        self._ended = False

    def take(self, rank: int) -> None:
        """Wait until it is the turn of ``rank``."""
        with self._changed:
            self._can_go_on[rank] = _at_once
            while not self._ended and self._running != rank:
                if self._running is None:
                    self._choose()
                else:
                    self._changed.wait()
            self._can_go_on.pop(rank, None)

    @contextmanager
    def paused(self, rank: int, can_go_on: Callable[[], bool]) -> Iterator[None]:
        """A block in which ``rank`` waits for what is there when ``can_go_on()``; after it, it has its turn again."""
        self._give_up(rank, can_go_on)
        try:
            yield
        finally:
            self.take(rank)

    def leave(self, rank: int) -> None:
        """``rank`` needs no turn any more."""
        self._give_up(rank, None)

    def end(self) -> None:
        """Let all run: a rank that has its turn does not come to the end of it."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _give_up(self, rank: int, can_go_on: Callable[[], bool] | None) -> None:
        with self._changed:
            self._can_go_on.pop(rank, None)
            if can_go_on is not None:
                self._can_go_on[rank] = can_go_on
            if self._running == rank:
                self._choose()

    def _choose(self) -> None:
        ready = [rank for rank, can_go_on in self._can_go_on.items() if can_go_on()]
        self._running = min(ready, default=None)
        self._changed.notify_all()
