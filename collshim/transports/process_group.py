"""Ranks that are processes: NCCL for CUDA tensors, gloo for CPU tensors, through torch ProcessGroups of our own."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.distributed import ProcessGroup

from collshim.call import Call
from collshim.errors import BrokenCommunicatorError, CollshimError, CommunicationError, DeadlineError, PeerError
from collshim.layout import Parts
from collshim.transports import Posted
from collshim.transports.background import Background
from collshim.transports.express import ProcessExpress
from collshim.transports.flight import Flight
from collshim.transports.letters import Postbox
from collshim.transports.payload import all_gather_single, all_to_all_single
from collshim.transports.point_to_point import PointToPoint
from collshim.transports.rendezvous import Rendezvous, end_nccl, never_free
from collshim.transports.slots import encode, slot_bytes, travels_in_slots
from collshim.transports.unseen import Behind, Unseen

_FEW = 32
"""Ranks up to which slots go from each to each."""


class ProcessGroupTransport:
    """One process's end of a group.

    Slots and data travel in two ProcessGroups, so that the order in each is the same on every rank however soon a
    rank hears that the others agree.

    Args:
        rendezvous: what this process's groups share.
        ranks: the group's ranks in the world, in the group's order.
        key: the group's name in the store, the same on all its ranks and used once.
        checks: whether the ranks compare their calls before data moves.
    """

    def __init__(self, rendezvous: Rendezvous, ranks: Sequence[int], key: str, *, checks: bool) -> None:
        self.rendezvous = rendezvous
        self.ranks = tuple(ranks)
        self.key = key
        self.rank = self.ranks.index(rendezvous.rank)
        self.size = len(self.ranks)
        self.checks = checks
        self._groups: dict[str, ProcessGroup] = {
            "payload": rendezvous.group(f"{key}/payload", ranks, cuda=True),
            "slots": rendezvous.group(f"{key}/slots", ranks, cuda=False),
        }
        self._store = rendezvous.store
        self._store.add(f"{key}/made", 1)
        self._latest: dict[str, Any] = {}
        self.sequence = 0
        self._queue: deque[Flight] = deque()
        self._driving = threading.RLock()
        self._posting = threading.Lock()  # of two threads' calls each is numbered, queued and sent as one
        self._failure: CommunicationError | None = None
        self.unseen = Unseen[Flight]()
        self._postbox = Postbox(self)
        self.express = None if checks else ProcessExpress(self, self._queue, self.unseen, self._latest)
        rendezvous.entrust(self)

    @property
    def payload_group(self) -> ProcessGroup:
        """Where data travels."""
        self.refuse_if_broken()
        return self._groups["payload"]

    def departed(self, works: Sequence[Any]) -> None:
        """Data is on its way through gloo; remember the last of it that tells when it is over.

        NCCL's need no remembering: its groups are ended in a way of their own, and a work that was captured into a
        graph must not be asked.
        """
        for work in works:
            if not isinstance(work, PointToPoint):
                self._latest["payload"] = work

    def post(self, call: Call, inputs: Parts | None, outputs: Parts | None, device: torch.device) -> Posted:
        """See ``Transport.post``."""
        self.refuse_if_broken()
        earlier = self.unseen.failed()
        posted = self._posted(call, inputs, outputs, device)
        return Behind(posted, self.unseen, earlier) if earlier else posted

    def _posted(self, call: Call, inputs: Parts | None, outputs: Parts | None, device: torch.device) -> Posted:
        if call.op in ("send", "recv"):
            return self._postbox.post(call, inputs, outputs, device)
        with self._posting:
            return self._flown(call, inputs, outputs, device)

    def _flown(self, call: Call, inputs: Parts | None, outputs: Parts | None, device: torch.device) -> Flight:
        flight = Flight(self, call._replace(sequence=self.sequence), inputs, outputs, device)
        self.sequence += 1
        if self.checks or call.discovers or call.op == "barrier":
            self._post_slots(flight, inputs)
        elif self._queue:
            self._queue.append(flight)  # behind calls that still ask the others, so that all ranks keep one order
            self._see_off(flight)
        else:
            flight.depart()
            if flight.failed():
                self._remember(flight)
        return flight

    def _post_slots(self, flight: Flight, inputs: Parts | None) -> None:
        slot = encode(flight.call, inputs, self.size)
        slots = torch.empty((self.size, slot_bytes(self.size)), dtype=torch.uint8, device="cpu")
        self._latest["slots"] = _exchanged(self._groups["slots"], slot, slots)
        flight.exchange(self._latest["slots"], slots)
        self._queue.append(flight)
        if (flight.call.device == "cpu" and travels_in_slots(flight.call, inputs)) or flight.call.op == "barrier":
            self._remember(flight)
        else:
            self._see_off(flight)

    def _see_off(self, flight: Flight) -> None:
        """Data that follows slots must depart though nobody waits here.

        NCCL wants the calls of all groups in one order on all ranks, so data on CUDA departs before the post returns.
        """
        self._remember(flight)
        if flight.call.device != "cuda":
            Background.watch(self)
            return
        try:
            self.agree_up_to(flight, time.monotonic() + self.rendezvous.timeout)
        except CollshimError as failure:
            flight.fail(failure)

    def _remember(self, flight: Flight) -> None:
        self.unseen[:] = [known for known in self.unseen if not known.departed or known.failed()]
        self.unseen.append(flight)

    def agree_up_to(self, flight: Flight, limit: float | None) -> None:
        """Let every call up to ``flight`` agree and depart, in the order in which they were posted."""
        with self._driving:
            queue = self._queue
            while not flight.departed and queue:
                head = queue[0]
                head.agree(limit)
                if queue and queue[0] is head:
                    queue.popleft()
            if not flight.departed:  # it was posted while another thread ended the group
                self.refuse_if_broken()

    def advance(self) -> bool:
        """Let the calls whose slots are here depart, without waiting; whether some still wait for theirs."""
        try:
            self._postbox.collect()  # also while another thread of this rank waits in a collective
            if self._driving.acquire(blocking=False):
                try:
                    queue = self._queue
                    while queue and queue[0].arrived() and self._failure is None:
                        self.agree_up_to(queue[0], None)
                finally:
                    self._driving.release()
        except CollshimError as failure:
            self.break_(failure)
        return self._failure is None and bool(self._queue or self._postbox.busy)

    def end(self, kind: type[CommunicationError], text: str) -> CommunicationError:
        """End this group on all ranks; the failure to raise, which is that of the rank that found out first."""
        name, told = self.rendezvous.board.end(self.key, kind.__name__, text)
        failure = (DeadlineError if name == DeadlineError.__name__ else PeerError)(told)
        self.break_(failure)
        return failure

    def break_(self, failure: CollshimError) -> None:
        """End this group: what is on its way, and what comes later, fails with ``failure``."""
        if self._failure is None:
            self._failure = failure if isinstance(failure, CommunicationError) else CommunicationError(str(failure))
        broken_by = self._failure
        self._fail_queued(lambda call: broken_by)
        self._postbox.fail(self._failure)
        self._let_go()

    def _fail_queued(self, failure: Callable[[Call], CollshimError]) -> None:
        """In place of a shorter queue a new one: whoever drives the old one needs no guard against it."""
        queue, self._queue = self._queue, deque()
        for flight in queue:
            flight.fail(failure(flight.call))

    def refuse_if_broken(self) -> None:
        """Raise where an earlier failure ended this group."""
        if self._failure is not None:
            raise BrokenCommunicatorError(f"this communicator was ended by an earlier failure: {self._failure}")

    def together(self) -> AbstractContextManager[None]:
        """See ``Transport.together``."""
        return self._postbox.together()

    def subgroup(self, ranks: Sequence[int], key: str) -> ProcessGroupTransport | None:
        """See ``Transport.subgroup``; its members wait for each other here."""
        self.refuse_if_broken()
        if self.rank not in ranks:
            return None
        members = [self.ranks[rank] for rank in ranks]
        return ProcessGroupTransport(self.rendezvous, members, f"{self.key}/{key}", checks=self.checks)

    def announce_leaving(self, why: str) -> None:
        """See ``Transport.announce_leaving``."""
        self.rendezvous.board.leave(why)

    def close(self) -> None:
        """See ``Transport.close``."""
        self._failure = self._failure or BrokenCommunicatorError("it was destroyed")
        self._fail_queued(lambda call: BrokenCommunicatorError(f"{call}: this communicator was destroyed meanwhile"))
        self.unseen.clear()
        self._postbox.close()
        self._let_go()

    def abandon(self) -> None:
        """The process ends: see ``Rendezvous.abandon``."""
        if not self._is_idle():
            never_free(list(self._groups.values()))

    def __del__(self) -> None:
        if getattr(self, "_groups", None):
            self._let_go()

    def _let_go(self) -> None:
        """Drop the groups, once gloo has ended their calls, however long that takes; where some are left, in a thread.

        In a thread too where another rank still makes the group: gloo makes it of connections between all pairs of
        ranks, and fails where one of them ends meanwhile.
        """
        groups = list(self._groups.values())
        self._groups.clear()
        self.express = None
        if groups:
            end_nccl(groups[0], failed=not isinstance(self._failure, BrokenCommunicatorError | type(None)))
        if self._is_idle() and self._is_made():
            groups.clear()  # at once: a thread in gloo's destructors would end a process that exits meanwhile
        else:
            self.rendezvous.ending.append(groups)
            threading.Thread(target=self._drop, args=(groups,), name="collshim-ending", daemon=True).start()

    def _is_idle(self) -> bool:
        return all(work.is_completed() for work in self._latest.values())

    def _is_made(self) -> bool:
        """Whether every rank has made the group, or nobody can say any more."""
        try:
            return int(self._store.add(f"{self.key}/made", 0)) >= self.size
        except RuntimeError:
            return True

    def _drop(self, groups: list[ProcessGroup]) -> None:
        limit = time.monotonic() + self.rendezvous.timeout
        while not (self._is_made() and self._is_idle()) and time.monotonic() < limit:
            time.sleep(0.01)
        if not self._is_idle():  # torch 2.6 waits in the destructor, and nobody else runs meanwhile
            never_free(groups)
        groups.clear()
        self.rendezvous.ending.remove(groups)


def _exchanged(group: ProcessGroup, slot: torch.Tensor, slots: torch.Tensor) -> Any:
    """Every rank's slot to every rank; for few ranks gloo is quicker where each sends its own to each."""
    if len(slots) <= _FEW:
        return all_to_all_single(group, slots, slot.expand_as(slots).contiguous(), [], [])
    return all_gather_single(group, slots.view(-1), slot)
