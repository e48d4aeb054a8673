"""Move data that does not fit in a slot, if the ranks may not read each other's memory: through shared buffers.

Each rank has two buffers in the memory that the group shares. It copies its input into them, one block at a time, and
the other ranks take the blocks from there. While they take one block, it fills the other buffer with the next one.

All ranks take the same steps, also those without an input or a result. In step i, a rank fills a buffer with its block
i, and takes block i - 1 of every rank. It begins the step once every rank has finished step i - 1: then block i - 1 of
every rank is there, and nobody reads block i - 2 any more, whose buffer it fills. It begins the first step once every
rank has finished the transfer before. A rank counts its steps, of all transfers of the group, in ``BLOCK``.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from collshim.calls.call import Call
from collshim.calls.plan import Plan
from collshim.layout import Parts
from collshim.transports.compute import reducer_of
from collshim.transports.shared_memory.group import SharedMemory
from collshim.transports.shared_memory.layout import BLOCK, BLOCKS

_BRIEFLY = 0.0002
"""Seconds for which a rank that does not wait looks whether the others have finished a step."""

_WRAP = 1 << 32


def length(inputs: Parts) -> Tensor:
    """Return what a rank posts if its input travels in blocks: the bytes of the input, as a 64-bit number."""
    parts = [inputs] if isinstance(inputs, Tensor) else inputs
    return torch.tensor([sum(part.nbytes for part in parts)], dtype=torch.int64, device="cpu")


class _Given(NamedTuple):
    """A rank's input, with its parts end to end.

    Attributes:
        nbytes: its length.
        place: its address in this process if it is in the rank's slot; 0 if it travels in blocks.
        first: the offset in bytes of the data for this rank.
    """

    nbytes: int
    place: int
    first: int


class BlockTransfer:
    """The data of one call that all ranks have posted; see ``far.FarTransfer``, which has the same methods.

    Args:
        shared: this rank's end; ``number``: the call's number there.
        plan, calls: the plan, and the calls of all ranks, which agree.
        dtype: the data's dtype.
        inputs, outputs: this rank's memory; ``outputs`` is None on a rank that receives nothing.

    Attributes:
        number: the call's number.
        steps: the number of steps that are left.
        is_read: whether other ranks read this rank's own memory, which they never do.
    """

    is_read = False

    def __init__(
        self,
        shared: SharedMemory,
        number: int,
        plan: Plan,
        calls: Sequence[Call],
        dtype: torch.dtype,
        inputs: Any,
        outputs: Any,
    ) -> None:
        self._shared, self.number, self._plan, self._calls, self._dtype = shared, number, plan, calls, dtype
        self._parts: Sequence[Tensor] = [] if inputs is None else [inputs] if isinstance(inputs, Tensor) else inputs
        self._outputs = outputs
        self._room = shared.block_room
        self._given = [self._read_given(rank) for rank in range(shared.size)]
        self._blocks = -(-max(given.nbytes for given in self._given if not given.place) // self._room)
        self._begin = shared.ring.counter(BLOCK, plan.rank)
        self.steps = self._blocks + 1

    def _read_given(self, rank: int) -> _Given:
        shared = self._shared
        _, kind, start, nbytes, _ = shared.ring.slot(self.number, rank)
        if kind != BLOCKS:
            return _Given(nbytes, shared.address + start, self._first(rank, nbytes))
        nbytes = int.from_bytes(shared.read(start, nbytes), "little")
        return _Given(nbytes, 0, self._first(rank, nbytes))

    def _first(self, rank: int, nbytes: int) -> int:
        own, shapes = self._plan.rank, self._calls[rank].sends
        if self._plan.collective.gives != "parts":
            return 0
        if shapes is None:
            return nbytes // self._shared.size * own
        return sum(torch.Size(shape).numel() for shape in shapes[:own]) * self._dtype.itemsize

    def is_ready(self) -> bool:
        """Return whether every rank has finished the step before the next one, after a short wait."""
        return bool(self._shared.ring.wait(BLOCK, self._awaited(), _BRIEFLY, True))

    def await_others(self, seconds: float) -> bool:
        """Wait until every rank has finished the step before the next one, for at most that many seconds."""
        return self._shared.await_counters(BLOCK, self._awaited(), time.monotonic() + seconds)

    def _awaited(self) -> int:
        """Return the number that every rank's counter must be past before the next step."""
        return (self._finished() - 1) % _WRAP

    def _finished(self) -> int:
        """Return the steps that this rank has finished, over all transfers."""
        return int(self._begin + self._blocks + 1 - self.steps) % _WRAP

    def step(self) -> None:
        """Take the next step. A step that was interrupted may be taken again: it reads no memory that it writes."""
        index = self._blocks + 1 - self.steps
        if index < self._blocks:
            self._fill(index)
        if index > 0 and self._plan.gets:
            self._take(index - 1)
        self.steps -= 1

    def announce(self) -> None:
        """Report to the other ranks which steps are over; after the last one, this rank has released the call."""
        self._shared.ring.advance(BLOCK, self._finished())
        if not self.steps:
            self._shared.release(self.number)

    def _buffer(self, rank: int, index: int) -> int:
        """Return the offset in the shared memory of the buffer of this block."""
        return self._shared.block_start(rank, index % 2)

    def _fill(self, index: int) -> None:
        """Copy a block of this rank's input into its buffer."""
        first = index * self._room
        target, before = self._shared.address + self._buffer(self._plan.rank, index), 0
        if self._given[self._plan.rank].place:
            return
        for part in self._parts:
            begin, end = max(first, before), min(first + self._room, before + part.nbytes)
            if begin < end:
                ctypes.memmove(target + begin - first, part.data_ptr() + begin - before, end - begin)
            before += part.nbytes

    def _take(self, index: int) -> None:
        """Take this rank's data from a block of every rank."""
        if self._plan.collective.reduces:
            self._reduce(index)
            return
        has_parts = self._plan.collective.gets == "parts"
        for rank in range(self._plan.size) if self._plan.collective.givers == "all" else [self._plan.call.root or 0]:
            self._copy(rank, index, self._outputs[rank] if has_parts else self._outputs)

    def _copy(self, rank: int, index: int, out: Tensor) -> None:
        given, first = self._given[rank], index * self._room
        if given.place:
            if index == self._blocks - 1 and out.nbytes:
                ctypes.memmove(out.data_ptr(), given.place + given.first, out.nbytes)
            return
        begin, end = self._range(first, given.first, out)
        if begin < end:
            source = self._shared.address + self._buffer(rank, index) + begin - first
            ctypes.memmove(out.data_ptr() + begin - given.first, source, end - begin)

    def _range(self, first: int, own: int, out: Tensor) -> tuple[int, int]:
        """Return the range of a giver's bytes in the block that begins at ``first`` that goes to ``out``."""
        return max(first, own), min(first + self._room, own + out.nbytes)

    def _reduce(self, index: int) -> None:
        """Reduce the ranks' blocks, in rank order, into the output."""
        first, own, out = index * self._room, self._given[0].first, self._outputs
        begin, end = self._range(first, own, out)
        if begin >= end:
            return
        starts = [self._buffer(rank, index) + begin - first for rank in range(self._plan.size)]
        blocks = [self._shared.view(start, end - begin).view(self._dtype) for start in starts]
        width = self._dtype.itemsize
        target = out.view(-1)[(begin - own) // width : (end - own) // width]
        reducer_of(self._plan.call, self._dtype)(blocks, target)
