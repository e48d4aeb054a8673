"""What the threads of a world, and of a group, share: failures, ranks that left, and incomplete calls."""

from __future__ import annotations

import threading
import weakref
from contextlib import ExitStack
from functools import partial
from typing import Any

from collshim.calls.agreement import unlike_sites
from collshim.calls.pending import PendingCalls
from collshim.calls.site import warn_at
from collshim.errors import CommunicationError, DeadlineError, PeerError
from collshim.transports.matching import MessageQueues, never_closed, warn_of
from collshim.transports.threads.exchange import Arrival, Exchange
from collshim.transports.threads.members import Members, Stalls


class ThreadWorld(Stalls):
    """What all groups of one world of threads share: the ranks that left, and where each rank waits.

    Attributes:
        compares_sites: whether the lines of the ranks' calls are compared too.
        open: the ends of groups that were not closed.
    """

    def __init__(self, size: int, *, compares_sites: bool = False) -> None:
        super().__init__(size)
        self.compares_sites = compares_sites
        self.lock = threading.RLock()
        self.open: weakref.WeakSet[Any] = weakref.WeakSet()
        self._groups: weakref.WeakSet[ThreadGroup] = weakref.WeakSet()
        self._registry: dict[str, ThreadGroup] = {}

    def group(self, ranks: tuple[int, ...], key: str) -> ThreadGroup:
        """The group of these global ranks under this key, made by the first rank that asks."""
        with self.lock:
            group = self._registry.get(key)
            if group is None:
                group = self._registry[key] = ThreadGroup(self, ranks, key)
                self._groups.add(group)
            return group

    def join(self, transport: Any) -> None:
        """Note a rank's end of a group; nobody asks for a group by its key once all its ranks have joined."""
        group = transport.group
        with self.lock:
            self.open.add(transport)
            group.joined += 1
            if group.joined == group.size:
                self._registry.pop(group.key, None)

    def close(self) -> None:
        """Close all groups."""
        with self.lock:
            transports = list(self.open)
        transports.sort(key=lambda transport: (transport.key, transport.rank))
        with ExitStack() as others:  # where a warning is an error, the rest is closed all the same
            for transport in transports:
                others.callback(transport.close)
            warn_of(never_closed(each for each in transports if each.group.failure is None), "the world")

    def leave(self, rank: int, why: str) -> None:
        """Global ``rank`` makes no further call: ranks that wait for it, now or later, get ``why`` at once."""
        with self.lock:
            self.left[rank] = why
            groups = list(self._groups)
        for group in groups:
            group.fail_the_hopeless()


class SiteExchange(Exchange):
    """A collective whose ranks compare the lines of their calls too."""

    def run(self, rank: int) -> None:
        """See ``Exchange.run``; every rank warns where the lines differ."""
        text = unlike_sites([arrival.call for arrival in self.arrivals], self.group.ranks)
        if text is not None:
            for arrival in self.arrivals:
                arrival.warn(partial(warn_at, arrival.caller, text))
        super().run(rank)


class ThreadGroup(Members):
    """What the ranks of one group share.

    Attributes:
        world: what it shares with other groups.
        members: the ranks of the group, in order.
        kind: of its exchanges.
        lock: of what follows.
        exchanges: the collectives that not all ranks have come to yet, by their number.
        queues: by receiver, the sends and receives that wait for each other.
        joined: how many ranks have their end.
        closed: the ranks that have closed their end.
        failure: what ended the group; None.
    """

    def __init__(self, world: ThreadWorld, ranks: tuple[int, ...], key: str) -> None:
        super().__init__(ranks, world)
        self.world = world
        self.key = key
        self.kind = SiteExchange if world.compares_sites else Exchange
        self.members = range(self.size)
        self.lock = threading.RLock()
        self.exchanges: dict[int, Exchange] = {}
        self.queues = [MessageQueues[Arrival, Arrival](_fits) for _ in ranks]
        self.joined = 0
        self.closed: set[int] = set()
        self.failure: CommunicationError | None = None

    def whereabouts(self, rank: int) -> str:
        """See ``Members``."""
        has_closed = rank in self.closed and self.ranks[rank] not in self.stalls.left
        return f"{'has closed this group and ' if has_closed else ''}{super().whereabouts(rank)}"

    def fail(self, failure: CommunicationError) -> None:
        """End this group: every rank that waits in it, or calls later, gets ``failure``."""
        with self.lock:
            self.failure = self.failure or failure
            unfinished = self._unfinished()
            self.exchanges.clear()
            for queues in self.queues:
                queues.clear()
        for exchange in unfinished:
            exchange.fail(failure)
        if isinstance(failure, DeadlineError) and self.world.turns is not None:
            self.world.turns.end()

    def fail_the_hopeless(self) -> None:
        """A rank has left: the exchanges that miss it can never be complete."""
        for exchange in self._unfinished():
            self.fail_if_hopeless(exchange)

    def close(self, rank: int, pending: PendingCalls) -> None:
        """One rank of the group closes its end; when all have, the group is forgotten."""
        with self.lock:
            queues = self.queues[rank]
            leaks = queues.leaks(rank, lambda send: send.rank) + pending.leaks(self.key, queues.posted)
            if self.failure is not None:
                leaks = []
            self.closed.add(rank)
        self.fail_the_hopeless()
        warn_of(leaks, f"group {self.key}")

    def fail_if_hopeless(self, exchange: Exchange) -> None:
        """End the group where a rank that an exchange misses comes to no further call."""
        missing = [rank for rank in exchange.missing() if self._has_left(rank)]
        candidates = exchange.candidates()
        if candidates and all(self._has_left(rank) for rank in candidates):
            missing = candidates
        if missing:
            self.fail(PeerError(exchange.missing_text(missing)))

    def _unfinished(self) -> list[Exchange]:
        with self.lock:
            arrivals = [arrival for queues in self.queues for arrival in (*queues.posted, *queues.unexpected)]
            return [*self.exchanges.values(), *(arrival.exchange for arrival in arrivals if arrival.exchange)]

    def _has_left(self, rank: int) -> bool:
        return self.ranks[rank] in self.stalls.left or rank in self.closed


def _fits(recv: Arrival, send: Arrival) -> bool:
    awaited, sent = recv.plan.call, send.plan.call
    return awaited.tag == sent.tag and awaited.root in (None, send.rank)
