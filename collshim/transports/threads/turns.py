"""Let a world's threads take turns: each runs until it waits for a call, then the next one that can go on runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def _at_once() -> bool:
    return True


class Turns:
    """The order in which threads run: it is the turn of the lowest rank that does not wait for a call.

    After ``end``, all threads run concurrently.
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
        """Give up the turn of ``rank`` in a block that waits until ``can_go_on()``; take a turn again afterwards."""
        self._give_up(rank, can_go_on)
        try:
            yield
        finally:
            self.take(rank)

    def leave(self, rank: int) -> None:
        """Give up the turn of ``rank`` for good."""
        self._give_up(rank, None)

    def end(self) -> None:
        """Let all threads run, because the rank that has the turn cannot finish it."""
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
