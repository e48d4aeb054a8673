"""Write and take messages between processes of one host in the compiled core, if their caller waits immediately.

A send needs no request if its data is small, or if the receiver takes it soon. A receive needs no request if its
message arrives soon, is like one that was compared before, and is the next in order.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from torch import Tensor

from collshim.calls.call import EAGER_BYTES
from collshim.calls.collective import SEND
from collshim.calls.pending import version_of
from collshim.calls.plan import Plan
from collshim.calls.repeats import Pattern, Repeat
from collshim.calls.site import Caller
from collshim.layout import Parts, buffer
from collshim.transports.processes.in_line import limited, make_repeat
from collshim.transports.processes.mailbox import Mailbox
from collshim.transports.processes.request import MessageRequest
from collshim.transports.shared_memory import core
from collshim.transports.shared_memory.layout import ASLEEP, PUSHED
from collshim.transports.sockets.connection import INLINE_BYTES, LONGEST_HEADER, NOTHING
from collshim.transports.waiting import FIRST_SLICE
from collshim.work import COMPLETE, Work


def set_in_line(messages: Any, box: Mailbox, plan: Plan) -> None:
    """Let a plan's messages be sent or received in one step, if they can; ``messages`` is the group's ``Messages``."""
    call = plan.call
    if not plan.on_cpu or call.root is None or call.root == plan.rank or call.discovers or not box.has_core:
        return
    plan.carrier.in_line = partial(_send if call.collective is SEND else _receive, messages, box)
    plan.carrier.make_repeat = partial(_repeat, messages, box)


def _repeat(messages: Any, box: Mailbox, plan: Plan, pattern: Pattern) -> Repeat | None:
    """Return the ``Repeat`` of a plan's messages with tensors of this pattern; None if the core does not take them."""
    group, sends, offers = messages.group, plan.gives, messages.connections.offers
    if pattern.timeout <= FIRST_SLICE or (sends and pattern.inputs[1] > INLINE_BYTES and not group.shared.reads_far):
        return None
    outbox, queues = messages.outbox, messages.queues
    used = (
        messages, plan.carrier, group.is_usable, group.pending, queues.posted, queues.unexpected, *messages.lost,
        messages.lock.acquire, messages.lock.release, outbox.sent, messages.release, outbox.wake, offers,
        partial(_open, messages), COMPLETE,
    )  # fmt: skip
    rings, sizes = (box.pipes, group.shared.ring), (EAGER_BYTES, INLINE_BYTES)
    messenger = core.Messenger(*rings, sends, plan.call.root, FIRST_SLICE, *offers.marks(), *sizes, used)
    return make_repeat(group, messenger, plan, pattern, LONGEST_HEADER)


def _open(
    messages: Any,
    plan: Plan,
    prepare: Any,
    array: Any,
    out: Any,
    number: int,
    last: tuple[Any, Caller | None],
    is_asleep: bool,
) -> Work[Any]:
    """Go on with an offer that the core has made, and that was not answered soon; the lock is held."""
    began, peer = time.monotonic(), plan.call.root or 0
    tensor, _, seconds = prepare(array, out)
    message = MessageRequest(messages.group, messages.connections, plan, None, last[1], messages)
    message.inputs, message.version = tensor, version_of(tensor) if message.caller else None
    data = NOTHING if tensor.nbytes <= INLINE_BYTES else buffer(tensor)
    messages.connections.offers.open(number, messages.group.ranks[peer], data, message)
    messages.outbox.pushed(peer, ASLEEP if is_asleep else PUSHED, is_awaited=True)
    messages.group.pending.last = last
    return limited(message, seconds, began)


def _send(
    messages: Any,
    box: Mailbox,
    plan: Plan,
    inputs: Any,
    outputs: Parts | None,
    caller: Caller | None,
    seconds: float | None,
) -> Work[Any]:
    is_small = type(inputs) is Tensor and inputs.nbytes <= EAGER_BYTES
    if is_small and messages.post_in_line(plan, inputs, caller):
        return COMPLETE
    work = _started(messages, plan, inputs, outputs, caller, seconds)
    takes_time = is_small or (seconds is not None and seconds <= FIRST_SLICE)
    return work if takes_time or not work.moves_soon() else COMPLETE


def _receive(
    messages: Any,
    box: Mailbox,
    plan: Plan,
    inputs: Parts | None,
    outputs: Any,
    caller: Caller | None,
    seconds: float | None,
) -> Work[Any]:
    if type(outputs) is Tensor and plan.carrier.awaited and messages.is_next():
        source, number = plan.call.root or 0, None
        with messages.lock:
            number = box.take(source, plan.carrier.awaited, outputs, waits=True)
            if number:
                messages.release(source, number)
        if number is not None:
            messages.group.pending.last = plan.call, caller
            return COMPLETE
    return _started(messages, plan, inputs, outputs, caller, seconds)


def _started(
    messages: Any, plan: Plan, inputs: Any, outputs: Any, caller: Caller | None, seconds: float | None
) -> MessageRequest:
    group, began = messages.group, time.monotonic()
    group.pending.last = plan.call, caller
    group.refuse_if_broken()
    message: MessageRequest = messages.start(plan, inputs, outputs, caller)
    limited(message, seconds, began)
    return message
