"""One rank's end of a group's shared memory: it posts this rank's calls, and waits for and reads the others' calls."""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from collshim.layout import Parts
from collshim.transports.shared_memory import core
from collshim.transports.shared_memory.layout import (
    ALIVE,
    CLOSED,
    INLINE,
    PAGE,
    POSTED,
    RELEASED,
    WAITING,
    blocks_bytes,
    pipes_bytes,
    segment_bytes,
)
from collshim.transports.shared_memory.peers import Peers
from collshim.transports.shared_memory.segment import Segment
from collshim.transports.waiting import have_processors

SLOTS = 8
"""The number of calls that a rank may post before the others have read the first of them."""

_SLICE = 0.02
"""Seconds of a wait between two checks of whether a rank's process has ended."""

_PAUSE = 0.001
"""Seconds between two checks for room, or for the reason why a rank has ended the group."""

_LOOKS = 3000
"""How often a wait checks before it sleeps, about 50 microseconds, if each rank has a processor of its own."""

_FEW_LOOKS = 64
"""The same if ranks share processors: each check yields to the other ranks."""

_INLINE_ROOM, _LEAST_ROOM, _ROOM_OF_GROUP = 1 << 16, 1 << 12, 1 << 20
_PIPE_ROOM, _PIPES_OF_GROUP = 1 << 18, 1 << 24
_BLOCK_ROOM, _BLOCKS_OF_GROUP = 1 << 18, 1 << 24
_WRAP = 1 << 32


def header_room(size: int) -> int:
    """Return the bytes reserved for a call's header in a group of ``size``: it can name a shape per peer."""
    return -(-(512 + 48 * size) // 64) * 64


def data_room(size: int) -> int:
    """Return the bytes of data that travel with a call's header in a group of ``size``."""
    return max(_LEAST_ROOM, min(_INLINE_ROOM, _ROOM_OF_GROUP // size // 64 * 64))


def pipe_room(size: int) -> int:
    """Return the bytes of each pipe in a group of ``size``, for messages that have not been taken yet; can be 0."""
    return min(_PIPE_ROOM, _PIPES_OF_GROUP // size**2 // PAGE * PAGE)


def block_room(size: int) -> int:
    """Return the bytes of each of a rank's two buffers in a group of ``size``."""
    return max(PAGE, min(_BLOCK_ROOM, _BLOCKS_OF_GROUP // (2 * size) // PAGE * PAGE))


def _slots_bytes(size: int) -> int:
    return -(-segment_bytes(size, SLOTS, header_room(size), data_room(size)) // PAGE) * PAGE


def _blocks_start(size: int) -> int:
    return _slots_bytes(size) + -(-pipes_bytes(size, pipe_room(size)) // PAGE) * PAGE


def segment_bytes_for(size: int) -> int:
    """Return the length in bytes of the memory that a group of ``size`` shares; unused pages cost nothing."""
    return _blocks_start(size) + blocks_bytes(size, block_room(size))


def _reason(rank: int, state: int) -> str:
    """Say why a rank, which has left the group or whose process has ended, posts no more calls."""
    if state == ALIVE:
        return f"the process of rank {rank} has ended"
    return f"rank {rank} has {'closed the group' if state == CLOSED else 'given up a call'}"


class Movement(NamedTuple):
    """The result that a rank receives from a call, in terms of the core.

    Attributes:
        what: one of ``layout.NOTHING`` and so on.
        reduction: the number of the reduction, from ``layout.reduction``; 0 if there is none.
        root: the call's root.
        part: the bytes of a rank's tensor, or of each of its parts.
    """

    what: int
    reduction: int
    root: int
    part: int


def written(outputs: Parts) -> int | bytes:
    """Return where the core writes a result: an address, or one for each part as 64-bit words."""
    if isinstance(outputs, Tensor):
        return outputs.data_ptr()
    return array("Q", [part.data_ptr() for part in outputs]).tobytes()


def given(data: Parts | None) -> tuple[int | bytes, int]:
    """Return where the core reads data, as ``written`` does, and its bytes; the parts of a list are equally long."""
    if isinstance(data, Tensor):
        return data.data_ptr(), data.nbytes
    return (written(data), data[0].nbytes * len(data)) if data else (0, 0)


class Slot(NamedTuple):
    """A call that a rank has posted.

    Attributes:
        header: the encoded call.
        kind: the kind of its data: see ``layout.INLINE``.
        data: the data as bytes, if it is inline; a view of the slot.
        posted: when it was posted, in seconds of ``time.monotonic``.
    """

    header: bytes
    kind: int
    data: Tensor | None
    posted: float


class Posted:
    """A call that this rank has posted, or will post once there is room.

    Attributes:
        number: its number among the group's posts; None until it is posted.
    """

    __slots__ = ("data", "header", "kind", "number", "shared")

    def __init__(self, shared: SharedMemory, header: bytes, data: Parts | None, number: int | None = None) -> None:
        """Pass ``number`` if the call has been posted; ``data`` is as for ``given``."""
        self.shared = shared
        self.header = header
        self.data = data
        self.kind = INLINE
        self.number = number

    def post(self, kind: int) -> None:
        """Post the call, whose data is of this kind; see ``layout.INLINE``."""
        self.kind = kind
        self.shared.post(self)

    def is_completed(self) -> bool:
        """Return whether all ranks have posted the call."""
        return self.shared.has_arrived(self)

    def is_over(self, seconds: float) -> bool:
        """Return whether all ranks have posted the call, after a wait of at most that many seconds.

        Raises:
            RuntimeError: the process of a rank that has not posted it has ended.
        """
        return self.shared.await_posts(self, seconds)

    def finish(self, headers: tuple[bytes, ...] | None, movement: Movement, target: int | bytes, seconds: float) -> int:
        """Let the core wait, compare the ranks' headers with ``headers``, and write this rank's result to ``target``.

        Return ``layout.DONE``, or another of its outcomes. If that is ``WAITING`` or ``ARRIVED``, this rank has
        released nothing, and the caller may call ``finish`` again, or finish the call in Python. ``target`` is from
        ``written``.
        """
        if self.number is None:
            return WAITING
        return int(self.shared.ring.finish(self.number, headers, *movement, target, seconds))

    def slots(self) -> list[Slot]:
        """Return each rank's slot for this call; the data is valid until ``release``."""
        return self.shared.slots(self.number or 0)

    def release(self) -> None:
        """Report that this rank has read the others' slots."""
        self.shared.release(self.number or 0)


class SharedMemory:
    """One rank's end.

    Attributes:
        bytes: the memory.
        block_room: the bytes of each of a rank's two buffers for blocks.
        has_core: whether the compiled core is in use.
        has_processors: whether each rank has a processor of its own.
        pipes: for messages; None if the group is so large that they would take too much memory.
        pipes_start: their offset in the memory, in bytes.
        reads_far: whether every rank may read the others' own memory.
        carries_all: whether every call of the group fits through it, so that the group needs no ProcessGroup.
        ring: the slots; see ``ring.Ring``.
        room: the bytes of data that travel with a call's header.
    """

    def __init__(
        self,
        segment: Segment,
        rank: int,
        size: int,
        processes: Sequence[int],
        *,
        reads_far: bool,
        carries_all: bool = False,
    ) -> None:
        self.rank, self.size = rank, size
        self.reads_far = reads_far
        self.carries_all = carries_all
        self._process = os.getpid()
        self.room = data_room(size)
        self.peers = Peers(processes, rank)
        self.has_processors = have_processors(size)
        looks = _LOOKS if self.has_processors else _FEW_LOOKS
        shape = size, rank, SLOTS, header_room(size), self.room, looks, segment.memory
        self.has_core = hasattr(core.Ring, "finish")
        self.ring: Any = core.Ring(segment.address, len(segment.memory), *shape)
        if reads_far and self.has_core:
            self.ring.read_far(array("q", processes).tobytes())
        self.bytes = memoryview(segment.memory).cast("B")
        self.pipes_start, room = _slots_bytes(size), pipe_room(size)
        self.block_room = block_room(size)
        place = segment.address + self.pipes_start, len(segment.memory) - self.pipes_start
        self.pipes: Any = core.Pipes(*place, size, rank, room, looks, segment.memory) if room else None
        self.address, self._memory = segment.address, segment.memory
        self._scratch = torch.empty(0, dtype=torch.uint8, device="cpu")
        self._unposted = deque[Posted]()
        self._lent = dict[int, Any]()
        self._posting = threading.Lock()

    def post(self, posted: Posted) -> None:
        """Post a call; do so later, in order, if the other ranks have not read enough of this rank's earlier calls."""
        with self._posting:
            if self._unposted or not self._post(posted):
                self._unposted.append(posted)

    def _post(self, posted: Posted) -> bool:
        data = posted.data
        address, nbytes = (data.data_ptr(), data.nbytes) if type(data) is Tensor else given(data)
        number = self.ring.post(posted.header, address, nbytes, posted.kind, False)
        if number is None:
            return False
        posted.number, posted.data = number, None
        return True

    def post_more(self) -> None:
        """Post the calls for which there is room now."""
        with self._posting:
            while self._unposted and self._post(self._unposted[0]):
                self._unposted.popleft()

    def has_arrived(self, posted: Posted) -> bool:
        """Return whether all ranks have posted the call, or some rank never will."""
        if posted.number is None:
            self.post_more()
        if posted.number is None:
            return self._lost(RELEASED, self._number_to_release()) != ""
        return self.has_passed(POSTED, posted.number) or self._lost(POSTED, posted.number) != ""

    def await_posts(self, posted: Posted, seconds: float) -> bool:
        """See ``Posted.is_over``."""
        limit = time.monotonic() + seconds
        while posted.number is None:
            self.post_more()
            if posted.number is None:
                self._refuse_lost(RELEASED, self._number_to_release())
                time.sleep(_PAUSE)
                if time.monotonic() >= limit or self.ring.has_ended():
                    return False
        return self.await_counters(POSTED, posted.number, limit)

    def await_counters(self, which: int, number: int, limit: float) -> bool:
        """Wait until this counter of every rank is past ``number``, at most until ``limit``; return whether it is.

        Raises:
            RuntimeError: a rank whose counter is not past it can no longer advance it.
        """
        polls = True
        while not self.ring.wait(which, number, max(0.0, min(_SLICE, limit - time.monotonic())), polls):
            polls = False
            self._refuse_lost(which, number)
            if self.ring.has_ended():
                time.sleep(_PAUSE)  # the reason is reported in the store, where the caller looks
                return False
            if time.monotonic() >= limit:
                return False
        return True

    def _number_to_release(self) -> int:
        """Return the number of the call that all ranks must have released before this rank can post another."""
        return int(self.ring.counter(POSTED, self.rank) - SLOTS) % _WRAP

    def _refuse_lost(self, which: int, number: int) -> None:
        why = self._lost(which, number)
        if why:
            raise RuntimeError(why)

    def _lost(self, which: int, number: int) -> str:
        """Say why this counter of a rank cannot pass ``number`` any more; empty if it can."""
        missing = [rank for rank in range(self.size) if self._is_missing(which, number, rank)]
        ended = [rank for rank in missing if self.peers.has_ended(rank)]  # first: they might be why others have left
        for rank in (*ended, *missing):
            state = self.ring.state(rank)
            has_left = state != ALIVE or rank in ended
            if has_left and self._is_missing(which, number, rank):  # once more: it might have posted before it left
                return _reason(rank, state)
        return ""

    def _is_missing(self, which: int, number: int, rank: int) -> bool:
        return bool((number - self.ring.counter(which, rank)) % _WRAP < _WRAP // 2)

    def slots(self, number: int) -> list[Slot]:
        """See ``Posted.slots``."""
        return [self._slot(*self.ring.slot(number, rank)) for rank in range(self.size)]

    def _slot(self, header: bytes, kind: int, start: int, nbytes: int, posted: float) -> Slot:
        if kind != INLINE or nbytes > self.room:
            return Slot(header, kind, None, posted)
        if not nbytes:
            return Slot(header, kind, torch.empty(0, dtype=torch.uint8, device="cpu"), posted)
        data = torch.frombuffer(
            self._memory, dtype=torch.uint8, count=nbytes, offset=start
        )  # on the path of every call
        return Slot(header, kind, data, posted)

    def release(self, number: int) -> None:
        """See ``Posted.release``."""
        self.advance(RELEASED, number)

    def advance(self, which: int, number: int) -> None:
        """Set this rank's counter past ``number``."""
        self.ring.advance(which, (number + 1) % _WRAP)

    def has_passed(self, which: int, number: int) -> bool:
        """Return whether this counter of every rank is past ``number``."""
        return bool(self.ring.wait(which, number, 0.0, False))

    def read(self, start: int, nbytes: int) -> bytes:
        """Return bytes of the memory."""
        return bytes(self._memory[start : start + nbytes])

    def view(self, start: int, nbytes: int) -> Tensor:
        """Return bytes of the memory, without copying them."""
        return torch.frombuffer(self._memory, dtype=torch.uint8, count=nbytes, offset=start)

    def block_start(self, rank: int, which: int) -> int:
        """Return the offset of the first or the second buffer of a rank for blocks."""
        return _blocks_start(self.size) + (2 * rank + which) * self.block_room

    def read_from(self, rank: int, address: int, target: int, nbytes: int) -> bool:
        """Copy from an address in the memory of another rank's process; return whether that was possible."""
        return core.read_far is not None and core.read_far(self.peers.processes[rank], address, target, nbytes)

    def scratch(self, nbytes: int) -> Tensor:
        """Return memory for the data of one step; the next call returns the same."""
        if self._scratch.nbytes < nbytes:
            self._scratch = torch.empty(nbytes, dtype=torch.uint8, device="cpu")
        return self._scratch[:nbytes]

    def lend(self, number: int, memory: Any) -> None:
        """Keep memory that other ranks read until they have released the call."""
        self._lent[number] = memory

    def is_read(self) -> bool:
        """Return whether other ranks still read this rank's memory; drop the memory that they have finished reading."""
        for number in list(self._lent):
            if self.has_passed(RELEASED, number) or self._lost(RELEASED, number):
                self._lent.pop(number, None)
        return bool(self._lent)

    def end(self) -> None:
        """Report that this rank has given up a call, or posts no more calls, and wake the other ranks."""
        if os.getpid() == self._process:  # not in a process forked from it, which has the same memory
            self.ring.end()

    def close(self) -> None:
        """Report that this rank posts no more calls; the memory is freed with the last reference to it."""
        if os.getpid() == self._process and self.ring.state(self.rank) == ALIVE:
            self.ring.close()
