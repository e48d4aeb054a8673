"""The ranks of a group of threads, and where each of them is."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any

from collshim.errors import CommunicationError
from collshim.transports.threads.clock import JumpingClock
from collshim.transports.threads.turns import Turns
from collshim.transports.waiting import watch


class Stalls:
    """Where the ranks of a world of threads are.

    Attributes:
        waiting: by global rank, the arrivals that its threads wait for.
        gave_up: by global rank, its last wait, if that wait failed.
        left: by global rank, why it makes no further calls.
        activities: by global rank, a function that describes what it does outside any collective; its result can be
            empty.
        turns: the order in which the threads run; None if they run concurrently.
        clock: the clock of the deadlines; None for the system's clock.
    """

    turns: Turns | None = None
    clock: JumpingClock | None = None

    def __init__(self, size: int) -> None:
        self.waiting: list[dict[Any, None]] = [{} for _ in range(size)]
        self.gave_up: list[Any] = [None] * size
        self.left: dict[int, str] = {}
        self.activities: Sequence[Callable[[], Callable[[], str] | None]] = ()

    def whereabouts(self, rank: int) -> str:
        """Say where global ``rank`` is, for error texts."""
        if rank in self.left:
            return self.left[rank]
        calls, failed = [*self.waiting[rank].copy()], self.gave_up[rank]
        if calls:
            return f"waits in {' and in '.join(map(str, calls))}"
        activity = self.activities[rank]() if self.activities else None
        text = "is in no collective" if activity is None else activity()
        return f"gave up {failed}" if failed is not None else text

    def awaited(self, rank: int) -> list[int]:
        """Return the global ranks that global ``rank`` waits for."""
        if rank in self.left:
            return []
        exchanges = [arrival.exchange for arrival in self.waiting[rank].copy() if arrival.exchange is not None]
        found = [
            exchange.group.ranks[other]
            for exchange in exchanges
            for other in exchange.missing() or exchange.candidates()
        ]
        return list(dict.fromkeys(found))

    def wait_in_turn(self, arrival: Any, timeout: float | None) -> None:
        """Wait for an arrival's exchange while other ranks take their turns, and then for this rank's own turn."""
        exchange, turns = arrival.exchange, self.turns
        rank = exchange.group.ranks[arrival.rank]
        self.waiting[rank][arrival] = None
        with nullcontext() if turns is None else turns.paused(rank, lambda: bool(exchange.finished)):
            over = partial(exchange.over, arrival.rank)
            try:
                if self.clock is None:
                    watch(arrival, over, None if timeout is None else time.monotonic() + timeout)
                else:
                    self.clock.wait(arrival, rank, over, timeout)
            finally:
                arrival.clear()


class Members:
    """The group whose ranks take part in an exchange."""

    def __init__(self, ranks: tuple[int, ...], stalls: Stalls) -> None:
        self.ranks = ranks
        self.size = len(ranks)
        self.stalls = stalls

    def whereabouts(self, rank: int) -> str:
        """Say where a rank of the group is, for error texts."""
        return self.stalls.whereabouts(self.ranks[rank])

    def fail(self, failure: CommunicationError) -> None:
        """End the group."""
        raise NotImplementedError
