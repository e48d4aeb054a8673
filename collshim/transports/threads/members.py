"""The ranks of a group of threads, and where each of them is."""

from __future__ import annotations

import time
from contextlib import nullcontext
from functools import partial
from typing import Any

from collshim.errors import CommunicationError
from collshim.transports.threads.turns import Turns
from collshim.transports.waiting import watch


class Stalls:
    """Where the ranks of a world of threads are.

    Attributes:
        waiting: by global rank, what it waits in; None where it does not.
        gave_up: by global rank, what it waited in last, where that failed.
        left: why a global rank comes to no further call.
        turns: in which their threads run; None where all run at the same time.
    """

    turns: Turns | None = None

    def __init__(self, size: int) -> None:
        self.waiting: list[Any] = [None] * size
        self.gave_up: list[Any] = [None] * size
        self.left: dict[int, str] = {}

    def whereabouts(self, rank: int) -> str:
        """Where global ``rank`` is, for error texts."""
        if rank in self.left:
            return self.left[rank]
        call, failed = self.waiting[rank], self.gave_up[rank]
        if call is not None:
            return f"waits in {call}"
        return f"gave up {failed}" if failed is not None else "is in no collective"

    def awaited(self, rank: int) -> list[int]:
        """The global ranks that global ``rank`` waits for."""
        arrival = self.waiting[rank]
        exchange = None if arrival is None else arrival.exchange
        if exchange is None or rank in self.left:
            return []
        return [exchange.group.ranks[other] for other in exchange.missing() or exchange.candidates()]

    def wait_in_turn(self, arrival: Any, timeout: float | None) -> None:
        """Wait for an arrival's exchange while other ranks have their turns, and then for its own rank's turn."""
        exchange, turns = arrival.exchange, self.turns
        rank = exchange.group.ranks[arrival.rank]
        self.waiting[rank] = arrival
        with nullcontext() if turns is None else turns.paused(rank, lambda: bool(exchange.finished)):
            limit = None if timeout is None else time.monotonic() + timeout
            watch(arrival, partial(exchange.over, arrival.rank), limit)


class Members:
    """The group whose ranks take part in an exchange."""

    def __init__(self, ranks: tuple[int, ...], stalls: Stalls) -> None:
        self.ranks = ranks
        self.size = len(ranks)
        self.stalls = stalls

    def fail(self, failure: CommunicationError) -> None:
        """End the group."""
        raise NotImplementedError
