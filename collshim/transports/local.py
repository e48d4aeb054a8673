"""Ranks that are threads of one process: their tensors are read and written directly, without sockets or copies.

The last rank to arrive starts the work; ranks that wait meanwhile help with large ones. So a call completes without
anybody waiting, one meeting per call is all the synchronisation there is, and every rank leaves when all are served.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

import torch
from torch import Tensor

from collshim.call import EAGER_BYTES, Call
from collshim.errors import BrokenCommunicatorError
from collshim.layout import Parts
from collshim.transports import Posted
from collshim.transports.alone_express import AloneExpress
from collshim.transports.local_express import LocalExpress
from collshim.transports.meeting import Meeting
from collshim.transports.plain import Express
from collshim.transports.seat import Brought, Seat
from collshim.transports.streams import stream_of
from collshim.transports.switchboard import LocalGroup
from collshim.transports.ticket import Ticket
from collshim.transports.unseen import Behind, Unseen

T = TypeVar("T", bound=Ticket)


class LocalTransport:
    """One thread's end of an in-process group."""

    checks = True

    def __init__(self, group: LocalGroup, rank: int) -> None:
        self.group = group
        self.rank = rank
        self.size = group.size
        self._sequence = 0
        self.unseen = Unseen[Ticket]()
        self._closed = False
        alone = group.size == 1
        self.express: Express | None = AloneExpress(group, self.unseen) if alone else LocalExpress(self, self.unseen)

    def post(self, call: Call, inputs: Parts | None, outputs: Parts | None, device: torch.device) -> Posted:
        """See ``Transport.post``."""
        self._refuse_if_closed()
        earlier = self.unseen.failed()
        posted = self._posted(call, inputs, outputs, device)
        return Behind(posted, self.unseen, earlier) if earlier else posted

    def _posted(self, call: Call, inputs: Parts | None, outputs: Parts | None, device: torch.device) -> Posted:
        if call.op in ("send", "recv"):
            return self._post_letter(call, inputs, outputs, device)
        meeting = self.take(Brought(self.rank, call, inputs, outputs, device, stream_of(device)))
        return self.remember(Ticket(self, meeting, self.rank, call))

    def take(self, seat: Seat) -> Meeting:
        """Take a seat in the group's next collective."""
        meeting = self.group.join(self._sequence, seat)
        self._sequence += 1
        return meeting

    def _post_letter(self, call: Call, inputs: Parts | None, outputs: Parts | None, device: torch.device) -> Posted:
        if call.op == "recv":
            meeting = self.group.deliver(
                Brought(self.rank, call, inputs, outputs, device, stream_of(device)), call.root
            )
            return self.remember(Ticket(self, meeting, 1, call))
        eager = isinstance(inputs, Tensor) and inputs.nbytes <= EAGER_BYTES
        inputs = inputs.clone() if eager and isinstance(inputs, Tensor) else inputs
        meeting = self.group.deliver(Brought(self.rank, call, inputs, outputs, device, stream_of(device)), call.root)
        return _Sent() if eager else self.remember(Ticket(self, meeting, 0, call))

    def together(self) -> AbstractContextManager[None]:
        """See ``Transport.together``; here none waits for another in any case."""
        return nullcontext()

    def subgroup(self, ranks: Sequence[int], key: str) -> LocalTransport | None:
        """See ``Transport.subgroup``."""
        self._refuse_if_closed()
        if self.rank not in ranks:
            return None
        members = tuple(self.group.ranks[rank] for rank in ranks)
        group = self.group.board.group(members, f"{self.group.key}/{key}")
        return LocalTransport(group, list(ranks).index(self.rank))

    def announce_leaving(self, why: str) -> None:
        """See ``Transport.announce_leaving``."""
        self.group.board.leave(self.group.ranks[self.rank], why)

    def close(self) -> None:
        """See ``Transport.close``."""
        if not self._closed:
            self._closed = True
            self.express = None
            self.group.close(self.rank)

    def remember(self, ticket: T) -> T:
        """Keep the ticket until its rank has waited for it: a failure that nobody saw is told by the next wait."""
        if not ticket.meeting.finished:
            self.unseen[:] = [known for known in self.unseen if not known.meeting.finished or known.failed()]
            self.unseen.append(ticket)
        elif ticket.failed():
            self.unseen.append(ticket)
        return ticket

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise BrokenCommunicatorError("this communicator was destroyed, should be a live one")


class _Sent:
    """A small send: its data is on its way, nobody need wait."""

    __slots__ = ("token",)
    joint = False
    source: int | None = None

    def __init__(self) -> None:
        self.token: Tensor | None = None

    def done(self) -> bool:
        return True

    def wait(self, timeout: float | None) -> None:
        return None
