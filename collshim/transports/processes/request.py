"""A message between processes: its envelope, and the request of the rank that sends or receives it."""

from __future__ import annotations

import struct
import time
from functools import partial
from typing import NamedTuple, Protocol

import torch
from torch import Tensor
from torch.distributed import DistNetworkError

from collshim.calls.call import Call, in_the_world
from collshim.calls.plan import Plan
from collshim.calls.site import Caller
from collshim.errors import CollshimError, CommunicationError, DeadlineError, PeerError
from collshim.layout import as_bytes, from_bytes
from collshim.transports.processes.exchange import GroupWork, without_source
from collshim.transports.processes.fingerprint import call_from, header_of
from collshim.transports.processes.group import Group
from collshim.transports.processes.polling import PolledWork
from collshim.transports.streams import stream_to_follow
from collshim.transports.waiting import FIRST_SLICE, watch

_LATER_SLICE = 0.5
"""Seconds between later looks while data moves."""

_PATIENCE, _SLOWEST = 1.0, 5e7
"""Seconds, and bytes per second: how long data may move after its peer came to no further call."""

_PREFIX = struct.Struct("<iiii")
"""Source, number, bytes of the header, and bytes of the data, -1 where it follows."""

_STORE_HAS_ENDED = (
    "messages: the process that served the world's store has ended, and with it the messages that were in it"
)


class Envelope(NamedTuple):
    """What a sender says of its tensor; ``data`` holds the values of one that travels along, flat."""

    source: int
    number: int
    call: Call
    data: Tensor | None

    def encoded(self) -> bytes:
        """The envelope as bytes."""
        header = header_of(self.call)
        data = b"" if self.data is None else as_bytes(self.data).numpy().tobytes()
        prefix = _PREFIX.pack(self.source, self.number, len(header), -1 if self.data is None else len(data))
        return prefix + header + data


def decoded(text: bytes) -> Envelope:
    """The envelope that was encoded."""
    source, number, length, count = _PREFIX.unpack_from(text)
    start = _PREFIX.size + length
    call = call_from(text[_PREFIX.size : start])
    if count < 0 or call.dtype is None:
        return Envelope(source, number, call, None)
    data = torch.frombuffer(bytearray(text[start:]) or bytearray(1), dtype=torch.uint8)[:count]
    return Envelope(source, number, call, from_bytes(data, call.dtype))


class Inbox(Protocol):
    """Where this rank's envelopes come in."""

    def collect(self) -> None:
        """Take what envelopes have come, without waiting."""

    def has_envelope(self, message: MessageRequest, seconds: float) -> bool:
        """Whether a recv's envelope has come, after at most that many seconds."""
        ...


class MessageRequest(GroupWork):
    """A send or recv on its way, seen by its own rank.

    Attributes:
        arrived: whether its envelope has come, or none is awaited; or whether it has failed.
        announced: whether its sender has written that the data is on its way.
        left_since: since when all of its peers are seen to have left, or None.
    """

    arrived = False
    announced = False
    left_since: float | None = None
    _channel = "/messages"

    def __init__(self, group: Group, inbox: Inbox, plan: Plan, target: Tensor | None, caller: Caller | None) -> None:
        super().__init__()
        self.group = group
        self.inbox = inbox
        self._call = plan.call if caller is None else plan.call._replace(site=caller.site())
        self.target = target
        self.device = plan.device
        self.stream = stream_to_follow(plan.call, plan.device)

    def has_moved(self) -> bool:
        """Whether the envelope has come, and with it or after it the data; or the failure."""
        return self.arrived and (self.work is None or self.work.is_completed())

    def _is_over(self) -> bool:
        if not self.arrived:
            self.inbox.collect()
        if not self.has_moved():
            self._poll_for_failure()
        return self.has_moved()

    def fail(self, failure: CollshimError) -> None:
        """This send or recv ends with ``failure``."""
        self.failure, self.work, self.arrived = failure, None, True

    def _complete(self, timeout: float | None) -> Tensor | None:
        """The received tensor; None for a send."""
        limit = None if timeout is None else time.monotonic() + timeout
        if not self.arrived:
            watch(self, partial(self.inbox.has_envelope, self), limit, later=FIRST_SLICE)
        if self.work is not None:
            self._await_data(limit)
        if self.failure is not None:
            raise self._own_failure()
        return self.target

    def _await_data(self, limit: float | None) -> None:
        """Wait until the data has moved."""
        work = self.work
        try:
            if isinstance(work, PolledWork):
                if not work.is_over(FIRST_SLICE if limit is None else min(FIRST_SLICE, limit - time.monotonic())):
                    watch(self, work.is_over, limit, first=0.001, later=_LATER_SLICE)
            else:
                work.wait()
            if self.call.op == "recv" and self.source is None:
                is_from_any = self.call.root is None and isinstance(work, PolledWork)
                self.source = work.source() if is_from_any else self.call.root
        except RuntimeError as error:
            if isinstance(error, CollshimError):
                raise
            raise self.broken(error) from error
        self.work = None

    def look(self) -> None:
        """Raise where nothing can come of it any more."""
        self.group.refuse_if_broken()
        self.raise_if_ended()
        left = self._peers_have_left()
        if left and not self.arrived:  # an envelope was in the store before its sender left
            self.inbox.collect()
        if left and (self._is_overdue() if self.arrived else True):
            raise self._end(PeerError, "nobody else will come")

    def expire(self) -> None:
        """See ``Watched``."""
        if not self.has_moved():
            raise self._end(DeadlineError, "the deadline passed")

    def broken(self, error: RuntimeError) -> CommunicationError:
        """End the group, for what torch raised of its store or of its data; the failure to raise."""
        text = _STORE_HAS_ENDED
        if not isinstance(error, DistNetworkError):
            text = self._text(f"the data did not move, the connection broke ({without_source(error)})")
        failure = self.group.end(PeerError, text)
        failure.__cause__ = error
        return failure

    def _end(self, kind: type[CommunicationError], why: str) -> CommunicationError:
        what = f"{'the data did not move' if self.arrived else 'nothing was sent'}, {why}"
        return self.group.end(kind, self._text(what))

    def _text(self, what: str) -> str:
        """The call, and whose it is, since the failure ends the group on all ranks; and where its peers are."""
        stalls, ranks = self.group.stalls, self.group.ranks
        peers = "; ".join(f"rank {rank} {stalls.whereabouts(ranks[rank])}" for rank in self._peers())
        return f"{self.call} on rank {self.group.rank}: {what}: {peers}{in_the_world(ranks)}"

    def _peers(self) -> list[int]:
        """The ranks that it may still wait for."""
        peer = self.source if self.call.root is None else self.call.root
        return [rank for rank in range(self.group.size) if rank != self.group.rank] if peer is None else [peer]

    def _peers_have_left(self) -> bool:
        """Whether all its peers come to no further call."""
        peers = self._peers()
        left = bool(peers) and all(self.group.stalls.any_left([self.group.ranks[rank]]) for rank in peers)
        if not left:
            self.left_since = None
        elif self.left_since is None:
            self.left_since = time.monotonic()
        return left

    def _is_overdue(self) -> bool:
        """Whether the data had time to move since its peer left; what its sender wrote of moves or breaks off."""
        if self.announced or self.left_since is None:
            return False
        nbytes = self.work.nbytes if isinstance(self.work, PolledWork) else 0
        return time.monotonic() - self.left_since > _PATIENCE + nbytes / _SLOWEST
