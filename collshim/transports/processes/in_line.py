"""Calls between processes of one host whose caller waits at once: posted and finished in the compiled core.

That reads larger data in the other ranks' memory, and waits for the ranks that read this one's.

Such a call needs no ``SharedExchange``, unless it takes longer than a slice or is not like the calls that agreed last.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from torch import Tensor
from torch.autograd.graph import increment_version

from collshim.arrays import Arrays
from collshim.calls.plan import InLine, Plan
from collshim.calls.site import Caller
from collshim.layout import Parts
from collshim.transports.processes.comparison import SharedComparison
from collshim.transports.processes.fingerprint import inline_tensor
from collshim.transports.processes.shared_exchange import SharedExchange
from collshim.transports.shared_memory.far import addresses
from collshim.transports.shared_memory.group import SharedMemory, given, written
from collshim.transports.shared_memory.layout import DONE, FAR, INLINE, WAITING
from collshim.transports.waiting import FIRST_SLICE
from collshim.work import COMPLETE, Delivery, Work


def in_line(group: Any, shared: SharedMemory) -> InLine:
    """Return a function that posts a call and waits for it; ``group`` is the ``ProcessTransport``.

    It does not keep the plan, which keeps it: see ``Agreed``.
    """
    return partial(_start_in_line, group, shared, shared.ring)


def _start_in_line(
    group: Any,
    shared: SharedMemory,
    ring: Any,
    plan: Plan,
    inputs: Any,
    outputs: Parts | None,
    caller: Caller | None,
    seconds: float | None,
) -> Work[Arrays]:
    agreed, now = plan.carrier.agreed, time.monotonic()
    may_be_late, group.last_post = now - group.last_post > FIRST_SLICE, now
    takes_time = may_be_late or (seconds is not None and seconds <= FIRST_SLICE)
    if takes_time or agreed.movement is None or group.has_queued():
        return _in_turn(group, plan, inputs, outputs, caller, seconds)
    kind, data = INLINE, inputs if plan.gives else None
    if data is not None and (type(data) is not Tensor or data.nbytes > shared.room):
        kind, data = _posted(shared, plan, inputs, outputs)
    address, nbytes = (data.data_ptr(), data.nbytes) if type(data) is Tensor else given(data)
    header, number = plan.carrier.header(plan.call, caller, group.header_bytes), None
    with group.agreeing:  # a thread that comes meanwhile queues its call behind this one
        with group.posting:
            if not group.has_queued():
                number = ring.post(header, address, nbytes, kind, True)
            sequence, group.sequence = group.sequence, group.sequence + (number is not None)
        if number is not None:
            group.pending.last = plan.call, caller
            target, found = 0 if outputs is None or not plan.gets else written(outputs), WAITING
            try:
                found = ring.finish(number, agreed.headers, *agreed.movement, target, FIRST_SLICE)
            finally:  # also if a signal's handler raised: the others need this rank's part of the call
                exchange = None if found == DONE else SharedExchange(group, plan, sequence, outputs)
                if exchange is not None:
                    exchange.continue_with(SharedComparison(shared, header, None, number), inputs, caller, now)
            if exchange is not None:
                return limited(exchange, seconds, now)
            if outputs is not None and target:
                increment_version(outputs)
            return COMPLETE
    return _in_turn(group, plan, inputs, outputs, caller, seconds)


def _posted(shared: SharedMemory, plan: Plan, inputs: Any, outputs: Parts | None) -> tuple[int, Parts | None]:
    """Return what this rank posts of a list or of larger data, and its kind: see ``layout.INLINE``."""
    fits, data = inline_tensor(inputs, shared.room)
    return (INLINE, data) if fits else (FAR, addresses(plan, inputs, outputs))


def _in_turn(
    group: Any, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None, seconds: float | None
) -> Work[Arrays]:
    group.pending.last = plan.call, caller
    return limited(group.start(plan, inputs, outputs, caller), seconds, time.monotonic())


def limited(work: Work[Arrays], seconds: float | None, began: float) -> Work[Arrays]:
    """Return a work with what is left of these seconds, since ``began``, for its wait."""
    left = None if seconds is None else max(0.0, seconds - (time.monotonic() - began))
    work.delivery = Delivery(left)
    return work
