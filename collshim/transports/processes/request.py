"""A message between processes: its envelope, and the request of the rank that sends or receives it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor

from collshim.calls.call import Call, in_the_world
from collshim.calls.pending import tell_change
from collshim.calls.plan import Plan
from collshim.calls.site import Caller
from collshim.errors import CollshimError, CommunicationError, DeadlineError, PeerError
from collshim.transports.processes.backend import without_source
from collshim.transports.processes.group import Group, GroupWork
from collshim.transports.sockets.connections import Connections
from collshim.transports.sockets.poller import Box
from collshim.transports.streams import follow, on_stream, stream_to_follow
from collshim.transports.waiting import FIRST_SLICE, watch

_WATCHED = 32
"""The largest number of ranks for which a receive from any of them connects to all, to notice if they end."""


class Envelope:
    """A sender's description of its tensor.

    Attributes:
        source: the sender's rank in the group.
        call: the sender's call; ``tag``: the message's tag.
        number: the number of the offer of larger data; 0 if there is none.
        data: the bytes of small data; a tensor for a message from a rank to itself; empty if the data follows.
        header: the call as it was sent; empty for a message from a rank to itself.
        stream: the stream on which that tensor is written; None on the CPU.
    """

    __slots__ = ("call", "data", "header", "number", "source", "stream", "tag")

    def __init__(
        self,
        source: int,
        call: Call,
        number: int,
        data: Any,
        stream: torch.Stream | None = None,
        header: bytes = b"",
    ) -> None:
        self.source = source
        self.call = call
        self.tag = call.tag
        self.number = number
        self.data = data
        self.header = header
        self.stream = stream


class SharedBox(Box, Protocol):
    """The messages of a group in shared memory, as a request sees them."""

    def receive_soon(self, message: MessageRequest) -> None:
        """Let the compiled core take the message of a receive, if it can; its data has then moved."""

    def repeat_soon(self, plan: Plan) -> None:
        """Make later messages like a finished one faster."""


class MessageRequest(GroupWork):
    """A send or recv under way, as its own rank sees it.

    Attributes:
        outputs: the memory for a recv's data; None for a send.
        arrived: whether its envelope has arrived, or none is expected.
        moved: whether its data has moved, or will not move.
        box: its group's messages in shared memory, for which it also waits; None if there are none.
        inputs: the input of a send of larger data.
    """

    outputs: Tensor | None
    arrived = False
    moved = False
    sequence_counts = False
    _is_moving = False
    _saw_left = False
    _why = ""
    _channel = "/messages"

    def __init__(
        self,
        group: Group,
        connections: Connections,
        plan: Plan,
        outputs: Tensor | None,
        caller: Caller | None,
        box: SharedBox | None = None,
    ) -> None:
        self.group = group
        self.box = box
        self.connections = connections
        self.plan = plan
        self.caller = caller
        self.outputs = outputs
        self.device = plan.device
        if not plan.on_cpu or plan.call.device == "any":
            self.stream = stream_to_follow(plan.call, plan.device)
        self._claim = True

    def begin(self) -> None:
        """See ``Request``."""
        self._is_moving = True

    def end(self, why: str) -> None:
        """See ``Request``."""
        self._why, self.moved = why, True

    def has_moved(self) -> bool:
        """Return whether the data has moved or was passed to NCCL, or the message has failed."""
        return self.moved

    def moves_soon(self) -> bool:
        """Wait for a first slice; return whether the data has moved, and nothing has failed."""
        moved = self.connections.wait(self.has_moved, FIRST_SLICE, self.box)
        return moved and not self._why and self.failure is None

    def _is_over(self) -> bool:
        if not self.connections.wait(self.has_moved, 0.0, self.box):
            self._poll_for_failure()
        return self.moved and (self.work is None or self.work.is_completed())

    def fail(self, failure: CollshimError) -> None:
        """End this send or recv with ``failure``."""
        self.failure, self.work, self.moved = failure, None, True

    def _complete(self, timeout: float | None) -> Tensor | None:
        """Return the received tensor; None for a send. Most messages have moved within the first slice."""
        if self.version is not None and self.inputs._version != self.version:
            tell_change(self)
        limit = None if timeout is None else time.monotonic() + timeout
        if not self.moved and (timeout is None or timeout >= FIRST_SLICE):
            if self.box is not None and self.outputs is not None:
                self.box.receive_soon(self)
            self.connections.wait(self.has_moved, FIRST_SLICE, self.box)
        if not self.moved:
            watch(self, partial(self.connections.wait, self.has_moved, box=self.box), limit, later=FIRST_SLICE)
        if self.stream is not None:
            self._order_streams(self.stream)
        if self._why:
            raise self.broken(self._why)
        if self.failure is not None:
            raise self._own_failure()
        if self.inputs is not None and self.box is not None:
            self.box.repeat_soon(self.plan)
        return self.outputs

    def _order_streams(self, stream: torch.Stream) -> None:
        """Make the stream of the post follow NCCL's data, and this thread's stream follow the stream of the post."""
        if self.group.launches.blocks:
            self.group.launches.block(self)
        if self.work is not None:
            try:
                with on_stream(stream):
                    self.work.wait()
                    self.nccl = self.work
                    self.mark_behind()
            except RuntimeError as error:
                raise self.broken(without_source(error)) from error
            self.work = None
        if self.outputs is not None and not self.outputs.is_cpu:
            follow(stream, self.outputs)

    def check(self) -> None:
        """Raise an error if the message can no longer arrive."""
        self.group.refuse_if_broken()
        self.raise_if_ended()
        if self._is_moving or self.moved:
            return
        peers = [self.group.ranks[rank] for rank in self._peers()]
        if len(peers) <= _WATCHED:
            for owner in peers:
                self.connections.watch(owner)
        if all(map(self.connections.end_of, peers)):
            raise self._end(PeerError, "no other rank will arrive")
        stalls, key = self.group.stalls, self.group.key
        left = all(self.connections.end_of(owner) or stalls.any_left([owner], key) for owner in peers)
        if left and self._saw_left:  # data that a rank sent before it left can still be under way for one slice
            raise self._end(PeerError, "no other rank will arrive")
        self._saw_left = left

    def describe(self) -> str:
        """See ``Watched``."""
        return self._text("interrupted")

    def expire(self) -> None:
        """See ``Watched``."""
        if not self.moved:
            raise self._end(DeadlineError, "the deadline passed")

    def broken(self, why: str) -> CommunicationError:
        """End the group, since the data cannot move; return the failure to raise."""
        peers = [self.group.ranks[rank] for rank in self._peers()]
        living = [owner for owner in peers if not self.connections.end_of(owner)]  # the others report nothing more
        self.group.stalls.await_leaving(living, self.group.key)
        return self.group.end(PeerError, self._text(f"the data did not move, the connection broke ({why})"))

    def _end(self, kind: type[CommunicationError], why: str) -> CommunicationError:
        has_envelope = self.arrived or self._is_moving
        what = f"{'the data did not move' if has_envelope else 'nothing was sent'}, {why}"
        return self.group.end(kind, self._text(what))

    def _text(self, what: str) -> str:
        """Describe the call, its rank (the failure ends the group on all ranks), and where its peers are."""
        stalls, ranks = self.group.stalls, self.group.ranks
        key = self.group.key
        peers = "; ".join(f"rank {rank} {stalls.whereabouts(ranks[rank], key)}" for rank in self._peers())
        chain = stalls.chain(self.awaited(), ranks)
        return f"{self.call} on rank {self.group.rank}: {what}: {peers}{in_the_world(ranks)}{chain}"

    def awaited(self) -> Sequence[int]:
        """See ``GroupWork``."""
        return [self.group.ranks[rank] for rank in self._peers()]

    def _peers(self) -> list[int]:
        """Return the ranks that this message can still wait for."""
        peer = self.source if self.plan.call.root is None else self.plan.call.root
        return [rank for rank in range(self.group.size) if rank != self.group.rank] if peer is None else [peer]
