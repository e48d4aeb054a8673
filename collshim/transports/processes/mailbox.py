"""A rank's messages in shared memory: its pipes in one group, and the order of messages from pipes and sockets.

If a pipe has no room for a message, the message goes through a socket instead. So the messages from one rank to another
are numbered, and taken in that order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from collshim.transports.shared_memory.group import SharedMemory
from collshim.transports.shared_memory.layout import CLOSED
from collshim.transports.sockets.connection import RELEASE, Frame

Handler = Callable[[int, Frame], None]
"""Takes a frame from a rank of the group. Its data is valid during the call."""


class Mailbox:
    """This rank's ends of a group's pipes; used with the lock of the connections held, except in ``look``.

    Attributes:
        has_core: whether the compiled core is in use.
        pipes: the pipes themselves.
        unanswered: the ranks to which this rank has offered data since it last woke them.
    """

    def __init__(self, shared: SharedMemory) -> None:
        self._shared, self.has_core = shared, shared.has_core
        self.pipes: Any = shared.pipes
        self.unanswered = set[int]()
        self._bytes = shared.bytes[shared.pipes_start :]
        self._ranks = [rank for rank in range(shared.size) if rank != shared.rank]
        self._held: dict[tuple[int, int], Frame] = {}
        self._sleepers = 0
        self._is_draining = False

    def push(self, rank: int, kind: int, number: int, header: bytes, address: int, nbytes: int) -> int:
        """Write a frame for a rank, with data from an address; return what ``pipes.push`` returns."""
        return int(self.pipes.push(rank, kind, kind != RELEASE, number, header, address, nbytes))

    def take(self, rank: int, headers: tuple[bytes, ...], target: Tensor, *, waits: bool) -> int | None:
        """Take a rank's message into ``target`` if it is there, is the next, and has one of these headers.

        With ``waits``, poll for it briefly first. Only the compiled core has this function.

        Returns:
            The number of the offer that was read, or 0 if the data arrived with the message; None if nothing was taken,
            and the message needs a closer look.
        """
        place = target.data_ptr(), target.nbytes
        number: int | None = self.pipes.take(rank, headers, *place, self._shared.ring, waits)
        return number

    def has_left(self, rank: int) -> bool:
        """Return whether a rank has closed the group, and might never read the frames written for it."""
        return bool(self._shared.ring.state(rank) == CLOSED)

    def leave(self) -> None:
        """Let the other ranks know that this rank takes no more messages, before its last check of the pipes."""
        self._shared.close()

    def hold(self, rank: int, frame: Frame) -> None:
        """Keep a message that arrived through a socket until its turn in ``drain``."""
        self._held[rank, frame.turn] = frame._replace(data=memoryview(bytes(frame.data)))

    def look(self, waits: bool) -> bool:
        """Return whether there is something to drain; with ``waits``, poll briefly."""
        return bool(self.pipes.look(waits))

    def drain(self, handle: Handler) -> None:
        """Let ``handle`` take all frames that are next in order.

        A frame counts as taken before it is handled: an interrupt of the handler must not repeat it.
        """
        if self._is_draining:  # the loop below goes on
            return
        self._is_draining = True
        try:
            for rank in self._ranks:
                while self._take(rank, handle):
                    pass
        finally:
            self._is_draining = False

    def _take(self, rank: int, handle: Handler) -> bool:
        """Handle one frame of a rank, if it is there; return whether it was."""
        turn = self.pipes.next(rank, 0)
        held = self._held.pop((rank, turn), None) if self._held else None
        if held is not None:
            self.pipes.next(rank, turn)
            handle(rank, held)
            return True
        record = self.pipes.head(rank)
        if record is None or record[1] > turn:  # the one before it is on its way through a socket
            return False
        kind, own, number, header, start, nbytes = record
        if own in (0, turn):
            self.pipes.next(rank, own)
            handle(rank, Frame(kind, 0, number, header, self._bytes[start : start + nbytes], own))
        self.pipes.drop(rank)
        return True

    def rest(self, *, asleep: bool) -> None:
        """Count a thread that is about to sleep, or has slept; the other ranks wake this one while there are any."""
        self._sleepers += 1 if asleep else -1
        self.pipes.rest(self._sleepers > 0)

    def rest_on(self) -> None:
        """Ask to be woken again, after another rank has done so, while a thread sleeps."""
        if self._sleepers:
            self.pipes.rest(True)
