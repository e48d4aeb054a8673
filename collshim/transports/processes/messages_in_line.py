"""Messages whose caller waits at once, between processes of one host: written and taken in the compiled core.

A send needs no request if its data is small. A receive needs no request if its message arrives soon, is like one that
was compared before, and is the next in order.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from torch import Tensor

from collshim.calls.call import EAGER_BYTES
from collshim.calls.collective import SEND
from collshim.calls.plan import Plan
from collshim.calls.repeats import Pattern, Repeat
from collshim.calls.site import Caller
from collshim.layout import Parts
from collshim.transports.processes.in_line import limited, make_repeat
from collshim.transports.processes.mailbox import Mailbox
from collshim.transports.shared_memory import core
from collshim.transports.sockets.connection import LONGEST_HEADER, MESSAGE
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
    """Return what repeats a plan's messages with tensors of this pattern; None if the core does not take them."""
    group, sends = messages.group, plan.gives
    if pattern.timeout <= FIRST_SLICE or (sends and pattern.inputs[1] > EAGER_BYTES):
        return None
    lists = messages.queues.posted, messages.queues.unexpected, *messages.lost
    lock = messages.lock.acquire, messages.lock.release
    messenger = core.Messenger(
        box.pipes, group.shared.ring, sends, plan.call.root, MESSAGE, FIRST_SLICE, messages, plan.carrier,
        group.is_usable, group.pending, *lists, *lock, messages.outbox.sent, messages.release, COMPLETE,
    )  # fmt: skip
    return make_repeat(group, messenger, plan, pattern, LONGEST_HEADER)


def _send(
    messages: Any,
    box: Mailbox,
    plan: Plan,
    inputs: Any,
    outputs: Parts | None,
    caller: Caller | None,
    seconds: float | None,
) -> Work[Any]:
    if type(inputs) is Tensor and inputs.nbytes <= EAGER_BYTES and messages.post_in_line(plan, inputs, caller):
        return COMPLETE
    return _started(messages, plan, inputs, outputs, caller, seconds)


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
) -> Work[Any]:
    group, began = messages.group, time.monotonic()
    group.pending.last = plan.call, caller
    group.refuse_if_broken()
    return limited(messages.start(plan, inputs, outputs, caller), seconds, began)
