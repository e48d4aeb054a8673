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
from collshim.transports.shared_memory.layout import DONE, FAR, INLINE, POSTED, RELEASED
from collshim.transports.waiting import FIRST_SLICE
from collshim.work import COMPLETE, Delivery, Work


def in_line(group: Any, shared: SharedMemory) -> InLine:
    """Return a function that posts a call and waits for it; ``group`` is the ``ProcessTransport``.

    It does not keep the plan, which keeps it: see ``Agreed``.
    """
    return partial(_start_in_line, group, shared)


def _start_in_line(
    group: Any,
    shared: SharedMemory,
    plan: Plan,
    inputs: Any,
    outputs: Any,
    caller: Caller | None,
    seconds: float | None,
) -> Work[Arrays]:
    now = time.monotonic()
    may_be_late, group.last_post = now - group.last_post > FIRST_SLICE, now
    takes_time = may_be_late or (seconds is not None and seconds <= FIRST_SLICE)
    if takes_time or plan.carrier.agreed.movement is None:
        return _in_turn(group, plan, inputs, outputs, caller, seconds)
    kind, data = INLINE, inputs if plan.gives else None
    if data is not None and (type(data) is not Tensor or data.nbytes > shared.room):
        kind, data = _posted(shared, plan, inputs, outputs)
    with group.agreeing:  # a thread that comes meanwhile queues its call behind this one
        work = _exchanged(group, shared, plan, kind, data, inputs, outputs, caller, now)
    if work is None:
        return _in_turn(group, plan, inputs, outputs, caller, seconds)
    return work if work is COMPLETE else limited(work, seconds, now)


def _exchanged(
    group: Any,
    shared: SharedMemory,
    plan: Plan,
    kind: int,
    data: Any,
    inputs: Any,
    outputs: Any,
    caller: Caller | None,
    now: float,
) -> Work[Arrays] | None:
    """Post a call and wait for a slice; return its work, or None if there was no room."""
    agreed, header = plan.carrier.agreed, plan.carrier.header(plan.call, caller, group.header_bytes)
    address, nbytes = (data.data_ptr(), data.nbytes) if type(data) is Tensor else given(data)
    ring, sequence, number = shared.ring, None, None
    try:
        with group.posting:
            if not group.has_queued():
                sequence = group.sequence
                number = ring.post(header, address, nbytes, kind, True)
                group.sequence = sequence + (number is not None)
        if number is None:
            return None
        group.pending.last = plan.call, caller
        target = 0 if outputs is None or not plan.gets else written(outputs)
        if ring.finish(number, agreed.headers, *agreed.movement, target, FIRST_SLICE) == DONE:
            if outputs is not None and target:
                increment_version(outputs)
            return COMPLETE
    except BaseException:  # of a signal's handler: the others need this rank's part of the call
        number = _number_after(group, shared, sequence, number)
        if number is not None:
            _queued(group, plan, sequence, SharedComparison(shared, header, None, number), inputs, outputs, caller, now)
        raise
    return _queued(group, plan, sequence, SharedComparison(shared, header, None, number), inputs, outputs, caller, now)


def _number_after(group: Any, shared: SharedMemory, sequence: int | None, number: int | None) -> int | None:
    """Return the number of a call that may have been posted before the core's answer was kept; count the call."""
    if number is None and sequence is not None:
        posted, released = (shared.ring.counter(which, shared.rank) for which in (POSTED, RELEASED))
        number = None if posted == released else released
    if number is not None:
        group.sequence = max(group.sequence, (sequence or 0) + 1)
    return number


def _queued(
    group: Any,
    plan: Plan,
    sequence: Any,
    comparison: SharedComparison,
    inputs: Parts | None,
    outputs: Parts | None,
    caller: Caller | None,
    posted: float,
) -> SharedExchange:
    """Queue a call that was posted; whoever waits moves it on, or a thread."""
    exchange = SharedExchange(group, plan, sequence, outputs)
    exchange.continue_with(comparison, inputs, caller, posted)
    return exchange


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
