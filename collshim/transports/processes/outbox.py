"""Send frames to the other ranks of a group, apart from collectives, through shared memory or a socket."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from collshim.transports.processes.mailbox import Mailbox
from collshim.transports.processes.request import MessageRequest
from collshim.transports.shared_memory.layout import ASLEEP, FULL
from collshim.transports.sockets.connection import MESSAGE, RELEASE, Frame
from collshim.transports.sockets.connections import Connections


class Outbox:
    """One rank's channel to the other ranks of a group.

    Args:
        connections: the process's connections.
        box: this rank's ends of the group's pipes, or None.
        ranks: the group's ranks, in the world.
        number: the group's number in the connections.
    """

    def __init__(self, connections: Connections, box: Mailbox | None, ranks: Sequence[int], number: int) -> None:
        self._connections, self._box, self._ranks, self.number = connections, box, ranks, number

    def send(
        self,
        peer: int,
        kind: int,
        number: int,
        header: bytes,
        address: int,
        nbytes: int,
        message: MessageRequest | None = None,
    ) -> None:
        """Send a frame, with data from an address; end ``message``, if any, once it is on its way."""
        box, turn = self._box, 0
        if box is not None:
            with self._connections.lock:
                outcome = box.push(peer, kind, number, header, address, nbytes)
                if outcome < FULL and not box.has_left(peer):
                    self.pushed(peer, outcome, is_awaited=bool(number))
                    if message is not None:
                        message.end("")
                    return
            turn = max(0, outcome - FULL)
        data = (ctypes.c_char * nbytes).from_address(address) if nbytes else b""
        if not number:
            data = bytes(data)  # the caller is free to write to the tensor
        frame = Frame(kind, self.number, number, header, memoryview(data).cast("B"), turn)
        self._connections.send(self._ranks[peer], frame, message)

    def sent(self, peer: int, outcome: int, header: bytes, data: bytes) -> bool:
        """Finish sending a message that the core wrote into a pipe; the caller holds the lock.

        Return whether the message is on its way; if not, the rank can no longer be reached.
        """
        box = self._box
        try:
            if box is not None and not box.has_left(peer):
                self.pushed(peer, outcome, is_awaited=False)
            else:
                frame = Frame(MESSAGE, self.number, 0, header, memoryview(data))
                self._connections.send(self._ranks[peer], frame, None)
        except OSError:
            return False
        return True

    def pushed(self, peer: int, outcome: int, *, is_awaited: bool) -> None:
        """Wake the receiver of a frame if it sleeps; else, if ``is_awaited``, note that its answer is awaited."""
        if outcome == ASLEEP:
            self.wake(peer)
        elif is_awaited and self._box is not None:
            self._box.unanswered.add(peer)

    def wake(self, peer: int) -> None:
        """Tell a rank that sleeps to look for frames sent to it."""
        self._connections.wake(self._ranks[peer], self.number)

    def release(self, source: int, number: int, why: str) -> None:
        """Tell the sender that an offer is over: see ``Connections.release``."""
        box = self._box
        if box is not None:
            outcome = box.push(source, RELEASE, number, why.encode(), 0, 0)
            if outcome < FULL and not box.has_left(source):
                self.pushed(source, outcome, is_awaited=False)
                return
        self._connections.release(self._ranks[source], number, why)
