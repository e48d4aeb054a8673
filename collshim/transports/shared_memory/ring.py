"""Run collectives between a group's ranks in shared memory, in Python; used if there is no compiled ``_core``.

The core also has ``finish``, which waits, compares and computes in one step, and ``read_far``, which lets it read
larger data in the memory of the ranks' processes.

``slots.h`` describes the protocol. It needs stores and loads that are not reordered. Python has no atomics, so this
form is used only on x86-64, where a processor's stores become visible in order and so do its loads.
"""

from __future__ import annotations

import ctypes
import struct
import time
from array import array
from collections.abc import Callable
from typing import Any

from collshim.transports.shared_memory.layout import (
    ALIVE,
    CLOSED,
    CONTROL_BYTES,
    COUNTER_BYTES,
    COUNTERS,
    ENDED,
    PAGE,
    POSTED,
    RELEASED,
    SLOT_HEAD,
    STAGE,
    STATE_OFFSET,
    segment_bytes,
    slots_start,
)
from collshim.transports.shared_memory.pipes import Pipes as Pipes

_SLOT = struct.Struct("<IIQd")
_WRAP = 1 << 32
_HALF = 1 << 31
_FUTEX, _SLEEP, _WAKE = 202, 0, 1
_EVERY_ONE = 2**31 - 1
_MANY = 1 << 30
_libc = ctypes.CDLL(None, use_errno=True)


class _Seconds(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def is_before(one: int, other: int) -> bool:
    """Return whether a counter of 32 bits, which wraps around, is before another."""
    return (one - other) % _WRAP >= _HALF


class Ring:
    """One rank's end of a group's slots.

    Args:
        address: the address of the segment in this process; it has ``nbytes`` bytes.
        size, rank: the group's size, and this rank in it.
        slots: the number of each rank's slots.
        header_bytes, data_bytes: the room for a header and for data in each slot.
        spins: how often a wait checks before it sleeps.
        owner: the memory as a buffer, which the ring keeps alive.

    Raises:
        ValueError: the segment is too small.
    """

    def __init__(
        self,
        address: int,
        nbytes: int,
        size: int,
        rank: int,
        slots: int,
        header_bytes: int,
        data_bytes: int,
        spins: int,
        owner: Any,
    ) -> None:
        if rank >= size or segment_bytes(size, slots, header_bytes, data_bytes) > nbytes:
            raise ValueError("the segment is too small for the ring")
        self._address, self._size, self._rank, self._slots = address, size, rank, slots
        self._header_bytes, self._data_bytes, self._spins = header_bytes, data_bytes, spins
        self._bytes = memoryview(owner).cast("B")
        self._words = self._bytes.cast("I")
        self._start, self._stride = slots_start(size), SLOT_HEAD + header_bytes + data_bytes
        self._next = self.counter(POSTED, rank)
        self._count_as_sleeper()

    def _count_as_sleeper(self) -> None:
        """Let compiled ranks wake this one whenever they set a counter: Python cannot count a sleeper in one step.

        The number is so large that it stays above zero if a compiled rank changes it meanwhile.
        """
        for rank in range(self._size):
            for which in range(COUNTERS):
                self._words[self._offset(which, rank) // 4 + 1] = _MANY

    def _offset(self, which: int, rank: int) -> int:
        return PAGE + rank * CONTROL_BYTES + which * COUNTER_BYTES

    def counter(self, which: int, rank: int) -> int:
        """Return a rank's counter.

        Raises:
            IndexError: there is no such counter.
        """
        if which >= COUNTERS or rank >= self._size:
            raise IndexError("there is no such counter")
        return self._words[self._offset(which, rank) // 4]

    def _slot(self, number: int, rank: int) -> int:
        return self._start + (rank * self._slots + number % self._slots) * self._stride

    def post(self, header: bytes, address: int | bytes, nbytes: int, kind: int, is_alone: bool) -> int | None:
        """Post a call with its header and data, which are copied; return its number.

        ``address`` is the data's address; or, as 64-bit words, the addresses of equal parts of it, one for each rank.

        Return None, and post nothing, if another rank has not read the next slot, or, with ``is_alone``, if this rank
        has not released all of its earlier calls.

        Raises:
            ValueError: the header or the data is larger than its room in a slot; or the parts are not one per rank.
        """
        number = self._next
        addresses = array("Q", address if isinstance(address, bytes) else [address])
        if isinstance(address, bytes) and len(addresses) != self._size:
            raise ValueError("there is not one address for each rank")
        if len(header) > self._header_bytes or nbytes > self._data_bytes:
            raise ValueError("the header or the data is larger than its room in a slot")
        if is_alone and self.counter(RELEASED, self._rank) != number:
            return None
        released = (self.counter(RELEASED, rank) for rank in range(self._size))
        if not all(is_before(number, (count + self._slots) % _WRAP) for count in released):
            return None
        self._next = (number + 1) % _WRAP
        slot = self._slot(number, self._rank)
        start = slot + SLOT_HEAD
        _SLOT.pack_into(self._bytes, slot, len(header), kind, nbytes, time.monotonic())
        self._bytes[start : start + len(header)] = header
        part = nbytes // len(addresses)
        for place, source in enumerate(addresses if part else ()):
            ctypes.memmove(self._address + start + self._header_bytes + place * part, source, part)
        self._advance(POSTED, self._next)
        return number

    def wait(self, which: int, number: int, seconds: float, polls: bool) -> bool:
        """Wait until this counter of every rank is past ``number``, at most some seconds; return whether it is.

        Return early if a rank has ended, or if a rank whose counter is not past ``number`` has closed the group. With
        ``polls``, poll before the thread sleeps; a later part of the same wait need not.
        """
        looks = self._spins if polls and seconds > 0 else 1
        for _ in range(looks):
            if self._passed(which, number):
                return True
            time.sleep(0)
        limit = time.monotonic() + seconds
        while not self._passed(which, number):
            left = limit - time.monotonic()
            if left <= 0 or self.has_ended() or self._is_left(which, number):
                return self._passed(which, number)
            self._sleep(which, number, left)
        return True

    def _passed(self, which: int, number: int) -> bool:
        return all(is_before(number, self.counter(which, rank)) for rank in range(self._size))

    def _is_left(self, which: int, number: int) -> bool:
        """Return whether a rank whose counter is not past ``number`` posts no more calls."""
        missing = (rank for rank in range(self._size) if self.state(rank) != ALIVE)
        return any(not is_before(number, self.counter(which, rank)) for rank in missing)

    def _sleep(self, which: int, number: int, seconds: float) -> None:
        """Sleep until the counter of the first rank that is missing changes."""
        for rank in range(self._size):
            seen = self.counter(which, rank)
            if not is_before(number, seen):
                limit = _Seconds(int(seconds), int(seconds % 1 * 1e9))
                self._futex(which, rank, _SLEEP, seen, ctypes.byref(limit))
                return

    def _futex(self, which: int, rank: int, action: int, value: int, limit: Any = None) -> None:
        word = ctypes.c_void_p(self._address + self._offset(which, rank))
        _libc.syscall(_FUTEX, word, action, ctypes.c_uint32(value), limit, None, 0)

    def slot(self, number: int, rank: int) -> tuple[bytes, int, int, int, float]:
        """Return a rank's header, the kind of its data, the data's offset and length in bytes, and when it posted.

        Raises:
            IndexError: there is no such rank.
        """
        if rank >= self._size:
            raise IndexError("there is no such rank")
        slot = self._slot(number, rank)
        header, kind, nbytes, posted = _SLOT.unpack_from(self._bytes, slot)
        start = slot + SLOT_HEAD
        text = bytes(self._bytes[start : start + header]) if header <= self._header_bytes else b""
        return text, kind, start + self._header_bytes, nbytes, posted

    def advance(self, which: int, value: int) -> None:
        """Set this rank's ``RELEASED``, ``STAGE`` or ``BLOCK``.

        ``STAGE`` follows ``RELEASED``: once 2**31 calls behind, it would seem to be ahead of them.
        """
        if which == RELEASED:
            self._words[self._offset(STAGE, self._rank) // 4] = value % _WRAP
        self._advance(which, value % _WRAP)

    def _advance(self, which: int, value: int) -> None:
        self._words[self._offset(which, self._rank) // 4] = value
        self._futex(which, self._rank, _WAKE, _EVERY_ONE)  # always: Python has no fence before a check for sleepers

    def end(self) -> None:
        """Report to the other ranks that this rank has given up a call, and wake the ranks that wait."""
        self._leave(ENDED)

    def close(self) -> None:
        """Report to the other ranks that this rank posts no more calls, and wake the ranks that wait."""
        self._leave(CLOSED)

    def _leave(self, state: int) -> None:
        self._words[(PAGE + self._rank * CONTROL_BYTES + STATE_OFFSET) // 4] = state
        for rank in range(self._size):
            for which in range(COUNTERS):
                self._futex(which, rank, _WAKE, _EVERY_ONE)

    def has_ended(self) -> bool:
        """Return whether a rank has called ``end``."""
        return any(self.state(rank) == ENDED for rank in range(self._size))

    def state(self, rank: int) -> int:
        """Return a rank's state: see ``layout.ALIVE``.

        Raises:
            IndexError: there is no such rank.
        """
        if rank >= self._size:
            raise IndexError("there is no such rank")
        return self._words[(PAGE + rank * CONTROL_BYTES + STATE_OFFSET) // 4]


def _reader() -> Callable[..., int]:
    """Return the system's ``process_vm_readv``."""
    function: Any = _libc.process_vm_readv
    function.restype = ctypes.c_ssize_t
    return function  # type: ignore[no-any-return]


class _Piece(ctypes.Structure):
    _fields_ = (("address", ctypes.c_void_p), ("nbytes", ctypes.c_size_t))


def read_far(process: int, source: int, target: int, nbytes: int) -> bool:
    """Copy from an address in another process to one in this process; return whether all bytes could be read."""
    while nbytes:
        local, remote = _Piece(target, nbytes), _Piece(source, nbytes)
        one = ctypes.c_ulong(1)
        copied = _reader()(
            ctypes.c_int(process), ctypes.byref(local), one, ctypes.byref(remote), one, ctypes.c_ulong(0)
        )
        if copied <= 0:
            return False
        source, target, nbytes = source + copied, target + copied, nbytes - copied
    return True
