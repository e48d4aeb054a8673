"""State that the threads of a world, and of a group, share: failures, ranks that left, and incomplete calls."""

from __future__ import annotations

import threading
import weakref
from contextlib import ExitStack
from functools import partial
from secrets import token_hex
from typing import Any

import torch

from collshim.calls.agreement import unlike_sites
from collshim.calls.pending import PendingCalls
from collshim.calls.site import warn_at
from collshim.errors import CommunicationError, DeadlineError, PeerError
from collshim.settings import get as options
from collshim.transports.matching import MessageQueues, never_closed, warn_of
from collshim.transports.threads.clock import JumpingClock
from collshim.transports.threads.exchange import Arrival, Exchange
from collshim.transports.threads.members import Members, Stalls


def _prepare_torch() -> None:
    """Let torch set up what ``FakeTensorMode`` needs, before several threads do so at the same time.

    In builds for CUDA of torch 2.10 and 2.11, on a machine without a GPU, two threads that enter the mode for the first
    time end the process (SIGSEGV). DTensor enters it.
    """
    getattr(torch._C, "_ensureCUDADeviceGuardSet", lambda: None)()


class ThreadWorld(Stalls):
    """State shared by all groups of one world of threads: the ranks that left, and where each rank waits.

    Attributes:
        compares_sites: whether the ranks also compare the lines of their calls.
        open: the ends of groups that are not closed.
        run: the name of this world in the log of calls.
    """

    def __init__(self, size: int, *, compares_sites: bool = False) -> None:
        super().__init__(size)
        _prepare_torch()
        if options().clock == "jumping":
            self.clock = JumpingClock(size, self.left)
        self.compares_sites = compares_sites
        self.run = token_hex(8)
        self.lock = threading.RLock()
        self.open: weakref.WeakSet[Any] = weakref.WeakSet()
        self._groups: weakref.WeakSet[ThreadGroup] = weakref.WeakSet()
        self._registry: dict[str, ThreadGroup] = {}

    def group(self, ranks: tuple[int, ...], key: str) -> ThreadGroup:
        """Return the group of these global ranks under this key, made by the first rank that asks."""
        with self.lock:
            group = self._registry.get(key)
            if group is None:
                group = self._registry[key] = ThreadGroup(self, ranks, key)
                self._groups.add(group)
            return group

    def join(self, transport: Any) -> None:
        """Register a rank's end of a group; once all ranks have joined, no rank asks for the group by its key."""
        group = transport.group
        with self.lock:
            self.open.add(transport)
            group.members_joined += 1
            if group.members_joined == group.size:
                self._registry.pop(group.key, None)

    def close(self) -> None:
        """Close all groups."""
        with self.lock:
            transports = list(self.open)
        transports.sort(key=lambda transport: (transport.key, transport.rank))
        with ExitStack() as others:  # if a warning is an error, the rest is still closed
            for transport in transports:
                others.callback(transport.close)
            warn_of(never_closed(each for each in transports if each.group.failure is None), "the world")

    def leave(self, rank: int, why: str) -> None:
        """Note that global ``rank`` makes no further calls: ranks that wait for it, now or later, fail with ``why``."""
        with self.lock:
            self.left[rank] = why
            groups = list(self._groups)
        for group in groups:
            group.fail_the_hopeless()


class SiteExchange(Exchange):
    """A collective whose ranks also compare the lines of their calls."""

    def run(self, rank: int) -> None:
        """See ``Exchange.run``; every rank warns if the lines differ."""
        text = unlike_sites([arrival.call for arrival in self.arrivals], self.group.ranks)
        if text is not None:
            for arrival in self.arrivals:
                arrival.warn(partial(warn_at, arrival.caller, text))
        super().run(rank)


class ThreadGroup(Members):
    """State that the ranks of one group share.

    Attributes:
        world: the state shared with other groups.
        members: the ranks of the group, in order.
        kind: the class of its exchanges.
        lock: held while the attributes below change.
        exchanges: the collectives at which not all ranks have arrived yet, by number.
        queues: the sends and receives that wait for each other, by receiver.
        members_joined: the number of ranks that have created their end.
        closed: the ranks that have closed their end.
        failure: the error that ended the group; None if it has not failed.
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
        self.members_joined = 0
        self.closed: set[int] = set()
        self.failure: CommunicationError | None = None

    def whereabouts(self, rank: int) -> str:
        """See ``Members``."""
        has_closed = rank in self.closed and self.ranks[rank] not in self.stalls.left
        return f"{'has closed this group and ' if has_closed else ''}{super().whereabouts(rank)}"

    def fail(self, failure: CommunicationError) -> None:
        """End this group: every rank that waits in it, or makes a later call, raises ``failure``."""
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
        """Fail the exchanges that can never complete, because a rank has left."""
        for exchange in self._unfinished():
            self.fail_if_hopeless(exchange)

    def close(self, rank: int, pending: PendingCalls) -> None:
        """Close one rank's end of the group."""
        with self.lock:
            queues = self.queues[rank]
            leaks = queues.leaks(rank, lambda send: send.rank) + pending.leaks(self.key, queues.posted)
            if self.failure is not None:
                leaks = []
            self.closed.add(rank)
        self.fail_the_hopeless()
        warn_of(leaks, f"group {self.key}")

    def fail_if_hopeless(self, exchange: Exchange) -> None:
        """End the group if a rank that an exchange still needs makes no further calls."""
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
