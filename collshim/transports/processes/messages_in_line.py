"""Messages whose caller waits at once, between processes of one host: written and taken in the compiled core.

A send needs no request if its data is small. A receive needs none if the message comes soon, is like one that was
compared before, and is the next in order.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from torch import Tensor

from collshim.calls.call import EAGER_BYTES
from collshim.calls.collective import SEND
from collshim.calls.plan import InLine, Plan
from collshim.calls.site import Caller
from collshim.layout import Parts
from collshim.transports.processes.in_line import limited
from collshim.transports.processes.mailbox import Mailbox
from collshim.work import COMPLETE, Work


def in_line(messages: Any, box: Mailbox, plan: Plan) -> InLine | None:
    """Return a function that sends or receives, or None if such messages take another way.

    ``messages`` is the group's ``Messages``.
    """
    call = plan.call
    if not plan.on_cpu or call.root is None or call.root == plan.rank or call.discovers or not box.has_core:
        return None
    return partial(_send if call.collective is SEND else _receive, messages, box)


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
            number = box.pipes.take(source, plan.carrier.awaited, outputs.data_ptr(), outputs.nbytes)
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
