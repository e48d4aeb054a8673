"""One collective between processes of one host, through shared memory.

Small data is in the slots, beside the calls. Each rank reads larger data from the memory of the ranks that have it; if
the system does not allow that, larger data travels in blocks.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NoReturn

from torch.autograd.graph import increment_version

from collshim.calls.collective import ALL_REDUCE
from collshim.calls.pending import tell_change, version_of
from collshim.calls.site import Caller
from collshim.errors import PeerError, described, is_of_user
from collshim.layout import Parts
from collshim.transports.processes.carrier import Agreed
from collshim.transports.processes.comparison import SharedComparison
from collshim.transports.processes.exchange import OVER, Exchange
from collshim.transports.processes.fingerprint import inline_tensor
from collshim.transports.processes.progress import PROGRESS
from collshim.transports.shared_memory.blocks import BlockTransfer, length
from collshim.transports.shared_memory.far import FarTransfer, Reading, addresses, reads_shares, unreadable
from collshim.transports.shared_memory.group import SharedMemory, written
from collshim.transports.shared_memory.layout import ABSENT, BLOCKS, DONE, FAR, INLINE, LENT, UNREADABLE
from collshim.transports.waiting import FIRST_SLICE


class SharedExchange(Exchange):
    """See ``Exchange``.

    Attributes:
        comparison: the exchange of the fingerprints.
        far: the transfer of larger data, while it is under way; else None.
    """

    comparison: SharedComparison
    far: FarTransfer | BlockTransfer | None = None
    _in_core: Any = None
    """The result that the core writes, kept here so that an interrupted call can go on with it."""

    def post(self, shared: SharedMemory, header: bytes) -> None:
        """Post the call with this rank's input or, if that is larger than a slot, with its addresses or its length."""
        inputs, plan = self.inputs, self.plan
        fits, data = inline_tensor(inputs, shared.room)
        kind = INLINE if fits else ABSENT
        if not fits and plan.on_cpu and not shared.reads_far:
            kind, data = BLOCKS, length(inputs)
        elif (not fits and plan.on_cpu) or (inputs is None and reads_shares(plan, shared)):
            if self.outputs is None and (plan.collective is ALL_REDUCE or not plan.gives):
                self.outputs = plan.carrier.allocate(plan)
            kind, data = FAR, addresses(plan, inputs, self.outputs)
        self.is_inline = fits and plan.carrier.is_even
        comparison = SharedComparison(shared, header, None if kind == ABSENT else data)
        comparison.post(kind)
        self.fingerprints = self.comparison = comparison

    def continue_with(
        self, comparison: SharedComparison, inputs: Parts | None, caller: Caller | None, posted: float
    ) -> None:
        """Go on with a call that was posted, and waited for during a first slice; it goes before all queued calls.

        The progress thread goes on with it if no rank waits for it.
        """
        self.set_inputs(inputs, caller)
        self.fingerprints, self.comparison, self.header = comparison, comparison, comparison.header
        self.posted, self.is_inline, self._first_slice = posted, True, OVER
        self.group.put_first(self)
        PROGRESS.watch(self.group)

    def has_arrived(self) -> bool:
        """See ``Exchange``."""
        return super().has_arrived() if self.far is None else self.far.is_ready()

    def agree(self, limit: float | None) -> None:
        """See ``Exchange``; a transfer in two steps takes two calls."""
        if self.far is not None:
            self._move(self.far, limit)
        elif not self._finish_in_core(limit):
            super().agree(limit)
            if self.failure is not None:
                self.comparison.release()

    def _finish_in_core(self, limit: float | None) -> bool:
        """Let the compiled core wait, compare and compute; return whether it did.

        It did not if the calls differ from those that agreed last, if the call takes longer than a slice, or if another
        rank might have given it up.
        """
        agreed: Agreed | None = self.plan.carrier.agreed.get(self.header)
        outputs: Any = self.outputs
        if agreed is None or agreed.movement is None or self.may_be_late:
            return False
        if self.version is not None and outputs is not None:  # as in ``_compute``
            if self.inputs._version != self.version:
                tell_change(self)
            self.version = None
        if outputs is None and self.plan.gets:
            outputs = self._in_core = agreed.allocate(self.plan) if self._in_core is None else self._in_core
        target = written(outputs) if outputs is not None and self.plan.gets else 0
        # a thread that advances calls for which no rank waits has no limit, and must not wait for a share of a sum
        seconds = OVER if limit is None else min(FIRST_SLICE, limit - time.monotonic())
        found = self.comparison.finish(agreed.headers, agreed.movement, target, seconds)
        if found >= UNREADABLE:
            self._end_far(RuntimeError(unreadable(found - UNREADABLE)))
        if found not in (DONE, LENT):
            return False
        if found == LENT:
            self.agreed, self.joint, self.outputs = agreed, agreed.joint, outputs
            self._lend(self.comparison.number or 0, is_read=True)
            return True
        if self.outputs is not None and target:
            increment_version(self.outputs)
        self.version = None if self.caller is None else version_of(self.inputs)  # another thread may finish the call
        self.agreed, self.joint, self.outputs, self.started = agreed, agreed.joint, outputs, True
        return True

    def _follow(self, agreed: Agreed, data: Sequence[Any]) -> None:
        """See ``Exchange``; an interrupted wait reads the slots again, so they are released last."""
        is_far = self.comparison.is_far
        if is_far:
            self._begin_far(agreed)
        else:
            super()._follow(agreed, data)
        is_shared = not self.comparison.is_in_blocks and (is_far or all(part is not None for part in data))
        if is_shared and agreed.headers is None and self.comparison.headers is not None:
            agreed.set_movement(self.plan, self.comparison.headers)
            if agreed.movement is not None and self.plan.carrier.in_line is None:
                self.group.set_in_line(self.plan)
        if not is_far:
            self.comparison.release()

    def _begin_far(self, agreed: Agreed) -> None:
        """Begin to read larger data from the memory of the ranks that have it."""
        if self.version is not None and self.inputs._version != self.version:
            tell_change(self)
        self.version = None  # until all steps are over: the output, which they write, might be the input
        plan = self.plan
        try:
            if self.outputs is None and plan.gets:
                self.outputs = agreed.allocate(plan)
            self.far = self.comparison.transfer(plan, agreed.calls, agreed.dtype, self.inputs, self.outputs)
        except Exception as error:
            self._end_far(error)
        if self.far.is_ready():
            self._move(self.far, time.monotonic())

    def _move(self, far: FarTransfer | BlockTransfer, limit: float | None) -> None:
        """Take the next step of a transfer, once the other ranks are ready for it; failures end the group."""
        shared = self.comparison.shared
        if far.steps:
            if not far.is_ready():
                far.announce()
                self._await(far.await_others, limit)
            try:
                far.step()
            except Exception as error:
                self._end_far(error)
        far.announce()
        if far.steps and shared.ring.has_ended():
            self.raise_if_ended()
        if not far.steps:
            self._lend(far.number, is_read=far.is_read)

    def _lend(self, number: int, *, is_read: bool) -> None:
        """Keep this rank's memory, now that the rank has its result, until the other ranks have read it."""
        shared = self.comparison.shared
        if shared.ring.has_ended():
            self.raise_if_ended()
        self.work = Reading(shared, number, (self.inputs, self.outputs)) if is_read else None
        if self.outputs is not None and self.plan.gets:
            increment_version(self.outputs)
        self.version = None if self.caller is None else version_of(self.inputs)
        self.far, self.started = None, True

    def _end_far(self, error: Exception) -> NoReturn:
        """End the group, since the other ranks wait until this rank has read their memory, or need its data."""
        if is_of_user(error):
            raise error
        raise self.group.end(PeerError, f"{self.call} on rank {self.group.rank}: {described(error)}") from error
