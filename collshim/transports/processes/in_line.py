"""Post and finish calls between processes of one host in the compiled core, if their caller waits immediately.

The core reads larger data from the other ranks' memory, and waits for the ranks that read this rank's memory.

These calls need no ``SharedExchange``, unless one takes longer than a slice, or differs from the calls that agreed when
this rank last made a call at the same line.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from types import CodeType
from typing import Any

from torch import Tensor
from torch.autograd.graph import increment_version

from collshim.arrays import Arrays
from collshim.calls.collective import BROADCAST
from collshim.calls.plan import Plan
from collshim.calls.repeats import Pattern, Repeat
from collshim.calls.site import Caller, user_frame
from collshim.layout import Parts
from collshim.settings import block_options
from collshim.transports.processes.comparison import SharedComparison
from collshim.transports.processes.fingerprint import inline_tensor
from collshim.transports.processes.shared_exchange import SharedExchange
from collshim.transports.shared_memory import core
from collshim.transports.shared_memory.far import addresses, is_in_shares, reads_shares
from collshim.transports.shared_memory.group import SharedMemory, given, written
from collshim.transports.shared_memory.layout import FAR, INLINE
from collshim.transports.waiting import FIRST_SLICE
from collshim.work import COMPLETE, Delivery, Work

_ONE = -1
"""Stands for the length of a list if there is a tensor instead."""

_PARTS = 16
"""The number of tensors in a list that the core takes."""

_IN_SLOT, _ADDRESSES, _AND_INPUT, _AND_OUTPUT = range(4)
"""What a rank posts: its data; or the addresses of its inputs, and then 0, or the input's or the output's address."""

_DEPTH = 2
"""The least number of frames, the framework's included, from the function that repeats a call to the program's line."""


def set_in_line(group: Any, shared: SharedMemory, plan: Plan) -> None:
    """Let a plan's calls be posted and finished in one step; ``group`` is the ``ProcessTransport``.

    Nothing that this sets refers to the plan, which refers to it: see ``Agreed``.
    """
    rest = partial(_go_on, group, shared)
    locks = (lock for own in (group.agreeing, group.posting) for lock in (own.acquire, own.release))
    queue = group.queued()
    poster = core.Poster(
        shared.ring, FIRST_SLICE, group, queue, group.pending, *locks, COMPLETE, rest, increment_version
    )
    in_shares = not plan.gives and reads_shares(plan, shared)
    plan.carrier.in_line = partial(_start_in_line, group, shared, poster, in_shares)
    plan.carrier.make_repeat = partial(_repeat, group, shared, poster)


def _start_in_line(
    group: Any,
    shared: SharedMemory,
    poster: Any,
    in_shares: bool,
    plan: Plan,
    inputs: Any,
    outputs: Any,
    caller: Caller | None,
    seconds: float | None,
) -> Work[Arrays]:
    now = time.monotonic()
    may_be_late, group.last_post = now - group.last_post > FIRST_SLICE, now
    takes_time = may_be_late or (seconds is not None and seconds <= FIRST_SLICE)
    header, last = plan.carrier.header(plan.call, caller, group.header_bytes), (plan.call, caller)
    agreed = plan.carrier.agreed.get(header)
    if takes_time or agreed is None or agreed.movement is None:
        return _in_turn(group, plan, inputs, outputs, caller, seconds)
    kind, data = INLINE, inputs if plan.gives else None
    if in_shares or (data is not None and (type(data) is not Tensor or data.nbytes > shared.room)):
        kind, data = _posted(shared, plan, data, outputs, in_shares)
    address, nbytes = (data.data_ptr(), data.nbytes) if type(data) is Tensor else given(data)
    target = 0 if outputs is None or not plan.gets else written(outputs)
    counted = outputs if target else None
    work: Work[Arrays] | None = poster.start(
        agreed, header, last, kind, address, nbytes, target, counted, plan, inputs, outputs, now
    )
    if work is None:
        return _in_turn(group, plan, inputs, outputs, caller, seconds)
    return work if work is COMPLETE else limited(work, seconds, now)


def _go_on(
    group: Any,
    shared: SharedMemory,
    plan: Plan,
    inputs: Any,
    outputs: Any,
    prepare: Any,
    sequence: int,
    header: bytes,
    last: tuple[Any, Caller | None],
    number: int,
    now: float,
) -> Work[Arrays]:
    """Queue a posted call, so that a wait, or the progress thread, goes on with it."""
    seconds = None
    if prepare is not None:
        inputs, outputs, seconds = prepare(inputs, outputs)
    exchange = SharedExchange(group, plan, sequence, outputs)
    exchange.continue_with(SharedComparison(shared, header, None, number), inputs, last[1], now)
    return exchange if prepare is None else limited(exchange, seconds, now)


def _repeat(group: Any, shared: SharedMemory, poster: Any, plan: Plan, pattern: Pattern) -> Repeat | None:
    """Return the ``Repeat`` of a plan's call with tensors of this pattern; None if the core does not take them."""
    given, gets = pattern.inputs, pattern.outputs
    nbytes = (1 if given[0] is None else given[0]) * given[1]
    is_far = nbytes > shared.room if plan.gives else reads_shares(plan, shared)
    if pattern.timeout <= FIRST_SLICE or (is_far and not shared.reads_far):
        return None
    if any(count and not count == plan.size <= _PARTS for count, _ in (given, gets)):
        return None
    return make_repeat(group, poster, plan, pattern, group.header_bytes, posts=_posts(plan) if is_far else _IN_SLOT)


def _posts(plan: Plan) -> int:
    """Return which addresses ``far.addresses`` posts, in terms of the core."""
    if not is_in_shares(plan):
        return _ADDRESSES
    return _AND_INPUT if plan.collective is BROADCAST and plan.gives else _AND_OUTPUT


def make_repeat(
    group: Any, carrier: Any, plan: Plan, pattern: Pattern, header_bytes: int, *, posts: int = _IN_SLOT
) -> Repeat:
    """Return the ``Repeat`` of a plan's call; ``carrier`` is the core's ``Poster`` or ``Messenger`` for it."""
    finds = Tensor, Tensor.data_ptr, sys._getframe, partial(_locate, header_bytes, group.checks)
    watched = pattern.allocate, pattern.prepare, pattern.posted, group.deferred, pattern.observers, block_options
    kinds = pattern.in_place, plan.gives, plan.gets, pattern.counts, group.checks, posts
    sizes = *_numbers(*pattern.inputs), *_numbers(*pattern.outputs), _DEPTH
    repeat: Repeat = core.Repeat(carrier, plan, plan.carrier.agreed, pattern.alike, *finds, *watched, *kinds, *sizes)
    return repeat


def _numbers(count: int | None, nbytes: int) -> tuple[int, int]:
    return _ONE if count is None else count, nbytes


def _locate(
    limit: int, checks: bool, plan: Plan, depth: int
) -> tuple[CodeType, int, bytes, tuple[Any, Caller | None], list[CodeType]]:
    """Find the line that made a call, as a place in its code; the core calls this.

    Also return the call's header, the call and caller to report later, and the code of collshim and torch in between.
    """
    if not checks:
        return _locate.__code__, 0, plan.carrier.header(plan.call, None, limit), (plan.call, None), []
    frame, own = user_frame(depth + 1)
    caller = Caller(frame.f_code, frame.f_lineno)
    return frame.f_code, frame.f_lasti, plan.carrier.header(plan.call, caller, limit), (plan.call, caller), own


def _posted(
    shared: SharedMemory, plan: Plan, inputs: Any, outputs: Parts | None, in_shares: bool
) -> tuple[int, Parts | None]:
    """Return the kind (see ``layout.INLINE``) and the data that this rank posts for a list or for larger data."""
    fits, data = inline_tensor(inputs, shared.room)
    return (INLINE, data) if fits and not in_shares else (FAR, addresses(plan, inputs, outputs))


def _in_turn(
    group: Any, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None, seconds: float | None
) -> Work[Arrays]:
    group.pending.last = plan.call, caller
    return limited(group.start(plan, inputs, outputs, caller), seconds, time.monotonic())


def limited(work: Work[Arrays], seconds: float | None, began: float) -> Work[Arrays]:
    """Return a work whose wait may take what is left of these seconds since ``began``."""
    left = None if seconds is None else max(0.0, seconds - (time.monotonic() - began))
    work.delivery = Delivery(left)
    return work
