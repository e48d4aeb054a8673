"""Start calls on a GPU that are like an earlier one: the caller's thread passes them to NCCL when they are posted."""

from __future__ import annotations

from typing import Any

from collshim.accelerator import current_stream, is_capturing, stream_handle
from collshim.arrays import Arrays
from collshim.calls.pending import tell_change, version_of
from collshim.calls.plan import InLine, Plan
from collshim.calls.site import Caller
from collshim.layout import Parts
from collshim.transports.processes.backend import Transfer
from collshim.transports.processes.exchange import Exchange
from collshim.transports.processes.group import Group
from collshim.work import COMPLETE, Work


class Launched(Exchange):
    """A collective that was passed to NCCL when it was posted, ordered after the work on this thread's stream."""

    on_gpu = True

    def __init__(
        self,
        group: Group,
        plan: Plan,
        sequence: int,
        outputs: Parts | None,
        work: Any,
        finish: Any,
        inputs: Parts | None,
        caller: Caller | None,
    ) -> None:
        self.group = group
        self.plan = plan
        self.sequence = sequence
        self.outputs = outputs
        self.work = work
        self.finish = finish
        self._claim = True
        if caller is not None:
            self.inputs, self.caller, self.version = inputs, caller, version_of(inputs)
        self.stream = stream = current_stream(plan.device)
        launches = group.launches
        if not is_capturing():
            launches.unwaited[self] = stream
            if not launches.are_watched:
                launches.watch()

    def _complete(self, timeout: float | None) -> Parts | None:
        """Make this thread's stream wait for the data; the host does not wait."""
        work, group, launches = self.work, self.group, self.group.launches
        is_other_stream = self.stream is not current_stream(self.plan.device)
        if work is None or group.deferred or is_other_stream or launches.blocks:
            return super()._complete(timeout)
        if self.version is not None and self.inputs._version != self.version:
            tell_change(self)
        try:
            work.wait()
        except RuntimeError:  # it failed; ``_complete_slowly`` finds the reason
            return super()._complete(timeout)
        if self.finish is not None:
            self._finish()
        self.nccl, self.work = work, None
        launches.let_go(self, self.delivery.timeout)
        if self.failure is not None or group.deferred:
            return super()._complete(timeout)
        return self.outputs

    def _is_late(self) -> bool:
        return False  # the process's launch watch checks the deadline


def start(group: Group, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None) -> Work[Arrays]:
    """Start a call after the calls that were passed to NCCL, and before those that are still being compared."""
    with group.posting:
        sequence = group.sequence
        group.sequence = sequence + 1
        try:
            outputs, work, finish = plan.carrier.transfer(group.gpu_port, inputs, outputs)
        except Exception as error:
            return _fail(group, plan, sequence, error)
        return Launched(group, plan, sequence, outputs, work, finish, inputs, caller)


def in_line(group: Group, plan: Plan, transfer: Transfer) -> InLine:
    """Return a function that starts a plan's calls in the caller's stream, so that it needs no wait for them."""
    call, device, launches = plan.call, plan.device, group.launches
    posted, number = launches.in_line.append, device.index
    handle: Any = None
    stream: Any = None

    def start_in_line(
        plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None, seconds: float | None
    ) -> Work[Arrays]:
        nonlocal handle, stream
        with group.posting:
            sequence = group.sequence
            group.sequence = sequence + 1
            try:
                outputs, work, finish = transfer(group.gpu_port, inputs, outputs)
                if work is not None:  # a release that uses a separate stream all the same
                    work.wait()
                if finish is not None:
                    finish(outputs)
            except Exception as error:
                return _fail(group, plan, sequence, error)
            if not is_capturing():
                now = None if number is None else stream_handle(number)
                if now is None or now != handle:
                    handle, stream = now, current_stream(device)
                posted((call, caller, sequence, stream, seconds, None))
                if not launches.are_watched:
                    launches.watch()
        return COMPLETE

    return start_in_line


def _fail(group: Group, plan: Plan, sequence: int, error: Exception) -> Work[Arrays]:
    exchange = Exchange(group, plan, sequence, None)
    exchange.on_gpu = True
    exchange.fail_to_start(error)
    return exchange
