"""Move data that does not fit in a slot: each rank reads it from the memory of the rank that has it, in one copy.

The ranks post the addresses of their inputs. Once all ranks have posted, each rank reads the data that it needs, and
releases the call. Once all ranks have released the call, no rank reads another rank's memory any more.

An all_reduce takes two steps: each rank reduces its share of the elements and writes it to its output; once all ranks
have done that, each rank reads the other shares from the other ranks' outputs. A broadcast to many ranks does the same,
with shares that are read from the root: if all ranks read the whole tensor from one process, they would contend for it.
All this is safe in place: a rank writes to a share of its memory only when no other rank reads that share any more.

The compiled core does the same for calls that have agreed before, if it has their reduction: see ``Movement``.
"""

from __future__ import annotations

import ctypes
import math
import time
from array import array
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import torch
from torch import Tensor

from collshim.calls.call import Call
from collshim.calls.collective import ALL_REDUCE, BROADCAST
from collshim.calls.plan import Plan
from collshim.layout import Parts
from collshim.transports.compute import reducer_of
from collshim.transports.shared_memory.group import SharedMemory
from collshim.transports.shared_memory.layout import FAR, RELEASED, STAGE

_BLOCK = 1 << 17
"""How many bytes of each rank's data are reduced at a time, so that they stay in a processor core's cache."""

_MANY, _LARGE = 4, 1 << 17
"""The fewest ranks, and the fewest bytes, with which the tensor of a broadcast is read in shares."""


def is_in_shares(plan: Plan) -> bool:
    """Return whether the ranks read shares of the result from each other, if all of them know its shape."""
    return plan.collective is ALL_REDUCE or (plan.collective is BROADCAST and plan.size >= _MANY)


def reads_shares(plan: Plan, shared: SharedMemory) -> bool:
    """Return whether this rank, which has no input, posts the address of its output.

    The ranks read a broadcast in shares if all but the root do so. That is slower if ranks take turns on a processor.
    """
    if plan.shape is None or plan.call.dtype is None or not is_in_shares(plan):
        return False
    is_large = math.prod(plan.shape) * plan.call.dtype.itemsize >= max(_LARGE, shared.room + 1)
    return is_large and plan.on_cpu and shared.reads_far and shared.has_processors


def addresses(plan: Plan, inputs: Parts | None, outputs: Parts | None) -> Tensor:
    """Return the addresses that a rank posts: its tensor's, or each of its parts', and then its output's.

    The output's address is 0 unless the other ranks read the output. The root of a broadcast has its shares in its
    input.
    """
    parts = [] if inputs is None else [inputs] if isinstance(inputs, Tensor) else inputs
    shares = inputs if plan.collective is BROADCAST and plan.gives else outputs
    output = shares if is_in_shares(plan) and isinstance(shares, Tensor) else None
    values = [*(part.data_ptr() for part in parts), 0 if output is None else output.data_ptr()]
    return torch.frombuffer(array("Q", values), dtype=torch.uint8)


def unreadable(rank: int) -> str:
    """Return the error text if the memory of a rank cannot be read."""
    return f"the memory of rank {rank} cannot be read; its process might have ended"


class _Given(NamedTuple):
    """Where a rank's data lies: in this process if ``process`` is 0."""

    process: int
    parts: Sequence[int]
    output: int


class FarTransfer:
    """The data of one call that all ranks have posted.

    Args:
        shared: this rank's end; ``number``: the call's number there.
        plan, calls: the plan, and the calls of all ranks, which agree.
        dtype: the data's dtype.
        inputs, outputs: this rank's memory; ``outputs`` is None on a rank that receives nothing.

    Attributes:
        number: the call's number.
        steps: the number of steps that are left.
        is_read: whether another rank reads this rank's memory.
    """

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
        self._inputs, self._outputs = inputs, outputs
        self._given = [self._read_given(rank) for rank in range(shared.size)]
        self._reduced, self._saved = 0, -1
        self._is_in_shares = is_in_shares(plan) and all(given.output for given in self._given)
        has_share = shared.ring.counter(STAGE, plan.rank) != number  # the compiled core made it, and was interrupted
        self.steps = 2 if self._is_in_shares and not has_share else 1
        self.is_read = self._given[plan.rank].process == plan.rank + 1 or plan.collective is ALL_REDUCE

    def _read_given(self, rank: int) -> _Given:
        shared = self._shared
        _, kind, start, nbytes, _ = shared.ring.slot(self.number, rank)
        if kind != FAR:
            return _Given(0, [shared.address + start], 0)
        values = array("Q", shared.read(start, nbytes))
        return _Given(rank + 1, values[:-1], values[-1])

    def await_others(self, seconds: float) -> bool:
        """Wait until every rank has taken the first step, for at most that many seconds."""
        return self._shared.await_counters(STAGE, self.number, time.monotonic() + seconds)

    def is_ready(self) -> bool:
        """Return whether the next step would not wait for a rank."""
        return self.steps == 2 or not self._is_in_shares or self._shared.has_passed(STAGE, self.number)

    def step(self) -> None:
        """Take the next step. A step that was interrupted may be taken again.

        Raises:
            RuntimeError: the memory of another rank could not be read.
        """
        if self._is_in_shares:
            self._make_share() if self.steps == 2 else self._read_shares()
        elif self._plan.gets:
            self._reduce() if self._plan.collective.reduces else self._copy()
        self.steps -= 1

    def announce(self) -> None:
        """Report to the other ranks which steps are over; after the last one, this rank has released the call."""
        if self.steps:
            self._shared.advance(STAGE, self.number)
        else:
            self._shared.release(self.number)

    def _fetch(self, rank: int, address: int, target: int, nbytes: int) -> None:
        """Copy from an address in the memory of ``rank``."""
        if not nbytes:
            return
        if not self._given[rank].process or rank == self._plan.rank:
            ctypes.memmove(target, address, nbytes)
        elif not self._shared.read_from(rank, address, target, nbytes):
            raise RuntimeError(unreadable(rank))

    def _part_of(self, rank: int, receiver: int, nbytes: int) -> int:
        """Return the address of the data, of ``nbytes`` bytes, that ``rank`` sends to ``receiver``."""
        given = self._given[rank].parts
        if self._plan.collective.gives != "parts":
            return given[0]
        return given[0] + receiver * nbytes if len(given) == 1 else given[receiver]

    def _copy(self) -> None:
        plan, outputs = self._plan, self._outputs
        has_parts = plan.collective.gets == "parts"
        for rank in range(plan.size) if plan.collective.givers == "all" else [plan.call.root or 0]:
            out = outputs[rank] if has_parts else outputs
            self._fetch(rank, self._start_of(rank, out), out.data_ptr(), out.nbytes)

    def _start_of(self, rank: int, out: Tensor) -> int:
        given = self._given[rank]
        if self._plan.collective.gives == "parts" and len(given.parts) == 1 and self._calls[rank].sends is not None:
            shapes = self._calls[rank].sends or ()  # parts of unequal shapes, end to end in a slot
            before = sum(torch.Size(shape).numel() for shape in shapes[: self._plan.rank])
            return given.parts[0] + before * self._dtype.itemsize
        return self._part_of(rank, self._plan.rank, out.nbytes)

    def _reduce(self) -> None:
        """Reduce all ranks' tensors, or this rank's part of each, into the output."""
        out, own, rank = self._outputs, self._inputs, self._plan.rank
        starts = [self._part_of(other, rank, out.nbytes) for other in range(self._plan.size)]
        own = own[rank] if self._plan.collective.gives == "parts" else own
        self._fold(starts, own.view(-1), out.view(-1))

    def _share(self, rank: int) -> tuple[int, int]:
        """Return the offset and the length in bytes of the share of ``rank``."""
        width = self._dtype.itemsize if self._plan.collective.reduces else 1
        count, size = self._outputs.nbytes // width, self._plan.size
        first, last = count * rank // size, count * (rank + 1) // size
        return first * width, (last - first) * width

    def _make_share(self) -> None:
        rank, root = self._plan.rank, self._plan.call.root
        offset, nbytes = self._share(rank)
        if not self._plan.collective.reduces:
            if root is not None and rank != root:
                self._fetch(root, self._given[root].parts[0] + offset, self._outputs.data_ptr() + offset, nbytes)
            return
        first, last = offset // self._dtype.itemsize, (offset + nbytes) // self._dtype.itemsize
        starts = [given.parts[0] + offset for given in self._given]
        self._fold(starts, self._inputs.view(-1)[first:last], self._outputs.view(-1)[first:last])

    def _read_shares(self) -> None:
        if self._plan.rank == self._plan.call.root:
            self._copy()
            return
        for rank in range(self._plan.size):
            offset, nbytes = self._share(rank)
            if rank != self._plan.rank:
                self._fetch(rank, self._given[rank].output + offset, self._outputs.data_ptr() + offset, nbytes)

    def _fold(self, starts: Sequence[int], own: Tensor, out: Tensor) -> None:
        """Reduce data that starts at these addresses in the ranks' memory, block by block; ``own`` is this rank's.

        If the result is written over it, each block is saved first: an interrupted step needs it again when it resumes.
        """
        reduces, itemsize, rank = reducer_of(self._plan.call, self._dtype), self._dtype.itemsize, self._plan.rank
        most, is_in_place = _BLOCK // itemsize, own.data_ptr() == out.data_ptr()
        scratch = self._shared.scratch(self._plan.size * _BLOCK).view(self._dtype).split(most)
        while self._reduced < out.numel():
            first, last = self._reduced, min(self._reduced + most, out.numel())
            blocks = [block[: last - first] for block in scratch]
            for other, block in enumerate(blocks):
                if other != rank:
                    self._fetch(other, starts[other] + first * itemsize, block.data_ptr(), block.nbytes)
            if not is_in_place:
                blocks[rank] = own[first:last]
            elif self._saved != first:
                blocks[rank].copy_(own[first:last])
                self._saved = first
            reduces(blocks, out[first:last])
            self._reduced = last


class Reading:
    """The wait until all ranks have released a call, and so no longer read this rank's memory; like torch's works.

    Until then ``memory`` is kept, even if nobody waits.
    """

    def __init__(self, shared: SharedMemory, number: int, memory: Any) -> None:
        self._shared, self._number = shared, number
        self._failure = ""
        shared.lend(number, memory)

    def is_completed(self) -> bool:
        """Return whether all ranks have released the call, or some rank never will."""
        return bool(self._failure) or self._shared.has_passed(RELEASED, self._number)

    def wait(self, timeout: timedelta = timedelta.max) -> bool:
        """Wait until all have released it; raise RuntimeError if the timeout passes or a rank's process has ended."""
        if self._failure:
            raise RuntimeError(self._failure)
        try:
            limit = time.monotonic() + timeout.total_seconds()
            is_over = self._shared.await_counters(RELEASED, self._number, limit)
        except RuntimeError as error:
            self._failure = str(error)
            raise
        if not is_over:
            raise RuntimeError("a rank still reads this one's memory")
        self._shared.is_read()
        return True
