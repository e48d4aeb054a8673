"""A rank's claim on the result of a meeting."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from torch import Tensor

from collshim.errors import CommunicationError
from collshim.transports.meeting import Meeting

if TYPE_CHECKING:
    from collshim.transports.local import LocalTransport


class Waited(Protocol):
    """What a rank waits in: an op, and what error texts show of it by ``str``."""

    @property
    def op(self) -> str:
        """The collective."""
        ...


class Ticket:
    """One rank's claim on a meeting's result."""

    __slots__ = ("call", "meeting", "place", "token", "transport")

    def __init__(self, transport: LocalTransport, meeting: Meeting, place: int, call: Waited) -> None:
        self.transport = transport
        self.meeting = meeting
        self.place = place
        self.call = call
        self.token: Tensor | None = None

    @property
    def joint(self) -> bool:
        """Whether some rank needs a gradient."""
        return self.meeting.joint

    @property
    def source(self) -> int | None:
        """The rank that a recv was served by."""
        return self.meeting.seated(0) if self.call.op == "recv" else None

    def done(self) -> bool:
        """Whether ``wait`` would return, or raise, at once."""
        return self.meeting.finished

    def failed(self) -> bool:
        """Whether the meeting failed."""
        return self.meeting.failure is not None

    def own_failure(self) -> CommunicationError:
        """What this rank is to raise: an exception of its own, since each is raised in another thread."""
        failure = self.meeting.failure or CommunicationError("no failure")
        found = type(failure)(*failure.args)
        found.__cause__ = failure.__cause__
        return found

    def wait(self, timeout: float | None) -> Any:
        """This rank's outputs."""
        transport = self.transport
        if not self.meeting.finished:
            self._wait(timeout)
        if transport.unseen:
            transport.unseen.seen(self)
        if self.meeting.failure is not None:
            raise self.own_failure()
        return self.meeting.result(self.place)

    def _wait(self, timeout: float | None) -> None:
        board, me = self.transport.group.board, self.transport.group.ranks[self.transport.rank]
        board.waiting_in[me] = self.call
        try:
            self.meeting.wait(timeout)
        finally:
            board.gave_up[me] = self.call if self.meeting.failure is not None else None
            board.waiting_in[me] = None
