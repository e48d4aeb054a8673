"""Exchange messages between two ranks in shared memory, in Python; used if there is no compiled ``_core``.

The core also has ``take``, which waits for a message, compares its header and copies its data in one step.

``pipes.h`` describes the protocol; ``ring`` says why this form is used only on x86-64. There a store can still become
visible after a later load, so a lock is taken between them, whose instructions keep that order.
"""

from __future__ import annotations

import ctypes
import struct
import threading
import time
from typing import Any

from collshim.transports.shared_memory.layout import (
    ASLEEP,
    FULL,
    PIPE_HEAD,
    PUSHED,
    RECORD_HEAD,
    SLEEPER_BYTES,
    UNIT,
    pipes_bytes,
    pipes_start,
)

_RECORD = struct.Struct("<IIQQQQ")
_FILLER = 0xFFFFFFFF
_TURN, _TAKEN = 8, PIPE_HEAD // 2

Record = tuple[int, int, int, bytes, int, int]
"""A record's kind, turn, number, header, and its data's offset and length in bytes."""


class Pipes:
    """One rank's ends of a group's pipes.

    Args:
        address: the address of the pipes in this process; they have ``nbytes`` bytes.
        size, rank: the group's size, and this rank in it.
        room: the bytes of a pipe's ring.
        spins: how often a wait checks before it gives up.
        owner: the memory as a buffer, which the pipes keep alive.

    Raises:
        ValueError: the memory is too small.
    """

    def __init__(self, address: int, nbytes: int, size: int, rank: int, room: int, spins: int, owner: Any) -> None:
        if rank >= size or room <= 0 or room % UNIT or pipes_bytes(size, room) > nbytes:
            raise ValueError("the segment is too small for the pipes")
        self._address, self._size, self._rank, self._room, self._spins = address, size, rank, room, spins
        start = address - ctypes.addressof(owner)
        self._bytes = memoryview(owner).cast("B")[start : start + pipes_bytes(size, room)]
        self._counters = self._bytes.cast("Q")
        self._words = self._bytes.cast("I")
        self._order = threading.Lock()

    def _pipe(self, source: int, target: int) -> int:
        """Return the offset of a pipe in bytes.

        Raises:
            IndexError: there is no such rank.
        """
        if not 0 <= source < self._size > target >= 0:
            raise IndexError("there is no such rank")
        return pipes_start(self._size) + (source * self._size + target) * (PIPE_HEAD + self._room)

    def _counts(self, pipe: int) -> tuple[int, int]:
        """Return how many bytes were written to a pipe, and taken from it."""
        return self._counters[pipe // 8], self._counters[(pipe + _TAKEN) // 8]

    def push(
        self, target: int, kind: int, is_message: bool, number: int, header: bytes, address: int, nbytes: int
    ) -> int:
        """Write a record for another rank, with data from an address; a message takes the next turn.

        Return ``layout.PUSHED``; ``ASLEEP`` if the other rank sleeps and the caller must wake it; or ``FULL`` plus the
        message's turn, with nothing written, if there is no room.
        """
        pipe, room = self._pipe(self._rank, target), self._room
        turn = 0
        if is_message:
            turn = self._counters[(pipe + _TURN) // 8] = self._counters[(pipe + _TURN) // 8] + 1
        written, taken = self._counts(pipe)
        offset = RECORD_HEAD + _rounded(len(header))
        total, left = _rounded(offset + nbytes), room - written % room
        skipped = left if left < total else 0
        if total > room // 2 or written + skipped + total - taken > room:
            return FULL + turn
        ring = pipe + PIPE_HEAD
        if skipped:
            _RECORD.pack_into(self._bytes, ring + written % room, _FILLER, 0, 0, 0, 0, skipped)
        place = ring + (written + skipped) % room
        _RECORD.pack_into(self._bytes, place, kind, len(header), turn, number, nbytes, total)
        self._bytes[place + RECORD_HEAD : place + RECORD_HEAD + len(header)] = header
        if nbytes:
            ctypes.memmove(self._address + place + offset, address, nbytes)
        self._counters[pipe // 8] = written + skipped + total
        self._keep_order()
        if not self._words[target * SLEEPER_BYTES // 4]:
            return PUSHED
        self._words[target * SLEEPER_BYTES // 4] = 0
        return ASLEEP

    def _keep_order(self) -> None:
        """Make the stores so far visible before the loads that follow."""
        with self._order:
            return

    def head(self, source: int) -> Record | None:
        """Return the oldest record of another rank, which stays where it is; None if there is none."""
        place = self._first(source)
        if place is None:
            return None
        kind, length, turn, number, nbytes, _ = _RECORD.unpack_from(self._bytes, place)
        start = place + RECORD_HEAD
        return kind, turn, number, bytes(self._bytes[start : start + length]), start + _rounded(length), nbytes

    def _first(self, source: int) -> int | None:
        pipe = self._pipe(source, self._rank)
        written, taken = self._counts(pipe)
        if written == taken:
            return None
        ring = pipe + PIPE_HEAD
        kind, *_, total = _RECORD.unpack_from(self._bytes, ring + taken % self._room)
        if kind == _FILLER:
            taken = self._counters[(pipe + _TAKEN) // 8] = taken + total
        return ring + taken % self._room

    def drop(self, source: int) -> None:
        """Give the memory of the oldest record back to its writer."""
        place, taken = self._first(source), (self._pipe(source, self._rank) + _TAKEN) // 8
        if place is not None:
            self._counters[taken] += _RECORD.unpack_from(self._bytes, place)[-1]

    def next(self, source: int, turn: int) -> int:
        """Return the turn of the next message of a rank; with a turn, record that this message is being handled."""
        index = (self._pipe(source, self._rank) + _TAKEN + _TURN) // 8
        if turn:
            self._counters[index] = turn
        return self._counters[index] + 1

    def look(self, waits: bool) -> bool:
        """Return whether there is a record for this rank; with ``waits``, poll briefly."""
        for _ in range(self._spins if waits else 1):
            for source in range(self._size):
                written, taken = self._counts(self._pipe(source, self._rank))
                if written != taken:
                    return True
            if waits:
                time.sleep(0)
        return False

    def rest(self, asleep: bool) -> None:
        """Announce whether this rank is about to sleep; it must look for records once more after that."""
        self._words[self._rank * SLEEPER_BYTES // 4] = asleep
        self._keep_order()


def _rounded(nbytes: int) -> int:
    return -(-nbytes // UNIT) * UNIT
