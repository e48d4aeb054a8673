"""One collective between processes: first the ranks' fingerprints, if calls are compared, and then the data.

It waits and polls like a message: see ``GroupWork``.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.distributed import DistBackendError

from collshim.calls.agreement import objection
from collshim.calls.call import Call, flattened
from collshim.calls.pending import tell_change, version_of
from collshim.calls.plan import Plan
from collshim.calls.site import Caller, warn_at
from collshim.errors import (
    CollshimError,
    CommunicationError,
    DeadlineError,
    PeerError,
    described,
    is_of_handler,
    is_of_user,
    local_failure,
)
from collshim.layout import Parts
from collshim.transports.processes.backend import (
    Finish,
    is_over,
    without_source,
)
from collshim.transports.processes.carrier import ASSUMED, Agreed, takes_lists
from collshim.transports.processes.comparison import Comparison
from collshim.transports.processes.fingerprint import Fingerprint
from collshim.transports.processes.group import Group, GroupWork
from collshim.transports.streams import follow, on_stream, stream_to_follow
from collshim.transports.waiting import FIRST_SLICE, watch

_IN_LISTS = ("sum", "prod", "min", "max")
_FIRST_SLICE = timedelta(seconds=FIRST_SLICE)
OVER = 0.001
"""Seconds of the first slice if the call has already waited for a first slice."""


class Exchange(GroupWork):
    """A posted collective.

    Attributes:
        caller: the line of the call, if the ranks exchange lines.
        header: the call, encoded, if calls are compared.
        fingerprints: the exchange of the ranks' fingerprints; None if calls are not compared.
        agreed: the ranks' calls, once they agreed; None if the ranks did not exchange them.
        is_inline: whether this rank knows that all data travels in the fingerprints, if the calls agree.
        started: whether the data is under way, or the call has failed.
        posted: when a compared call was posted; ``may_be_late``: whether this rank had not posted for a while before.
    """

    outputs: Parts | None
    agreed: Agreed | None = None
    header = ASSUMED
    started = True
    is_inline = False
    fingerprints: Comparison | None = None
    posted, may_be_late = 0.0, False
    _first_slice = FIRST_SLICE
    on_gpu = False

    def __init__(
        self, group: Group, plan: Plan, sequence: int, outputs: Parts | None, work: Any = None, finish: Any = None
    ) -> None:
        """Pass ``work`` and ``finish`` if the data is under way: torch's work, and the function for the outputs."""
        self.group = group
        self.plan = plan
        self.sequence = sequence
        self.outputs = outputs
        self.work = work
        self.finish: Finish | None = finish
        self._claim = True
        self.version = self.failure = self._failure = None
        # Every wait reads these. Python reads an instance's own attributes faster than the defaults of its class.
        self.on_gpu = self.joint = self.was_over = self._is_changed = False

    def set_inputs(self, inputs: Parts | None, caller: Caller | None) -> None:
        """Set this rank's input, if the data is not under way yet."""
        plan = self.plan
        self.started = False
        self.inputs, self.caller, self.joint = inputs, caller, plan.call.needs_grad
        if caller is not None and type(inputs) is Tensor and not inputs.is_inference():
            self.version = inputs._version
        if not plan.on_cpu or plan.call.device == "any":
            self.stream = stream_to_follow(plan.call, plan.device)

    def start(self) -> None:
        """Start moving the data once the calls agree, or if they are not compared; keep failures for ``wait``."""
        group = self.group
        if self.version is not None and self.inputs._version != self.version:
            tell_change(self)
        try:
            agreed = self.agreed or self._assume_agreed()
            self.on_gpu = agreed.is_on_gpu
            start = agreed.transfer or agreed.prepare(self.plan)
            if self.on_gpu:
                group.launches.meet(self, agreed.device)
                group.launches.mark()
            port = group.connected_gpu_port() if self.on_gpu else group.data_group
            self.outputs, work, finish = start(port, self.inputs, self.outputs)
        except (DeadlineError, PeerError) as failure:  # from the meeting of the ranks before NCCL connects them
            self.fail(failure)
            return
        except Exception as error:
            self.fail_to_start(error)
            return
        if not self.on_gpu:
            group.latest = work
        else:
            self.stream = self.stream or torch.accelerator.current_stream()  # CUDA was not initialized here before
            self.launch = group.launches.add(self, work, self.stream)
        self.work, self.finish, self.started = work, finish, True
        self.version = None if self.caller is None else version_of(self.inputs)  # earlier changes were our own

    def fail_to_start(self, error: Exception) -> None:
        """Handle a failure to start moving the data: the group has ended, or an error of NCCL or of memory."""
        self.group.refuse_if_broken()
        self.fail(self._local_failure(error))  # do not raise: the progress thread must survive

    def _local_failure(self, error: BaseException) -> CommunicationError:
        """Return this rank's failure, though the others may succeed; on CUDA they wait in NCCL, so the group ends."""
        if isinstance(error, CommunicationError):
            return error
        if isinstance(error, DistBackendError):
            return self.group.end(PeerError, f"{self.call}: NCCL failed: {error}")
        if self.on_gpu:
            return self.group.end(PeerError, f"{self.call} on rank {self.group.rank}: {described(error)}")
        return local_failure(self.plan.call.op, error)

    def _assume_agreed(self) -> Agreed:
        """Assume that every rank makes the same call as this one: the ranks did not exchange their calls."""
        plan, carrier = self.plan, self.plan.carrier
        agreed: Agreed | None = carrier.agreed.get(ASSUMED)
        if agreed is None:
            agreed = Agreed(plan)
            carrier.transfer = agreed.prepare(plan)
            may_be_in_line = agreed.is_on_gpu and not agreed.is_ragged
            self.group.set_start(plan, agreed.make_transfer(plan, is_in_line=True) if may_be_in_line else None)
            carrier.keep(ASSUMED, agreed)
            carrier.takes_lists = takes_lists(plan.call)
        return agreed

    def _start_behind(self) -> None:
        """Call ``start`` from any thread, ordered after the stream on which the call was posted."""
        with on_stream(self.stream):
            self.start()

    def has_arrived(self) -> bool:
        """Return whether the next step of ``agree`` would not wait."""
        return self.fingerprints is None or self.fingerprints.is_completed()

    def agree(self, limit: float | None) -> None:
        """Take the next step towards ``started``: compare the calls, start the data; keep failures for ``wait``.

        This step waits for the fingerprints of all ranks.
        """
        if self.fingerprints is None:
            self._start_behind()
            return
        fingerprints = self._receive(self.fingerprints, limit)
        if self._may_be_given_up([fingerprint.posted for fingerprint in fingerprints]):
            self.raise_if_ended()
        agreed = self._compare([fingerprint.call for fingerprint in fingerprints])
        if agreed is not None:
            self.agreed, self.joint = agreed, agreed.joint
            if agreed.sites and self.caller:
                self.warn(partial(warn_at, self.caller, agreed.sites))
            self._follow(agreed, [fingerprint.data for fingerprint in fingerprints])

    def _compare(self, calls: Sequence[Call]) -> Agreed | None:
        """Return the ``Agreed`` of calls that agree; fail and return None if they do not.

        If the check is off, shapes may differ as over gloo: only the numbers of elements must be equal.
        """
        group, plan, carrier = self.group, self.plan, self.plan.carrier
        agreed: Agreed | None = carrier.agreed.get(self.header)
        if agreed is not None and agreed.exchanged == calls:
            return agreed
        is_strict = group.checks or any(call.is_ragged or call.discovers for call in calls)
        if (failure := objection(calls if is_strict else [*map(flattened, calls)], group.ranks)) is not None:
            self.fail(failure)
            return None
        agreed = Agreed(plan, calls, group.ranks if group.compares_sites else None) if is_strict else Agreed(plan)
        agreed.exchanged = calls
        carrier.keep(self.header, agreed)
        return agreed

    def _follow(self, agreed: Agreed, data: Sequence[Any]) -> None:
        """Compute the result if all data arrived with the fingerprints; start moving the data otherwise."""
        if any(part is None for part in data):
            self._start_behind()
            return
        try:
            self._compute(agreed, data)
        except Exception as error:
            self.fail(self._local_failure(error))

    def _receive(self, comparison: Comparison, limit: float | None) -> list[Fingerprint]:
        """Wait for the fingerprints and decode them."""
        self._await(comparison.is_over, limit)
        try:
            return comparison.read()
        except (ValueError, struct.error) as error:
            raise self.group.end(PeerError, f"{self.call}: {error}") from error

    def _may_be_given_up(self, posted: Sequence[float]) -> bool:
        """Return whether one rank posted so much later than another that a rank might have given the call up.

        The ranks' clocks are not synchronized. So this rank checks how long it had not posted and how long it has
        waited, and how much farther apart the ranks' posts are than in the call at which they were closest together.
        """
        spread = max(posted) - min(posted)
        self.group.least_spread = least = min(spread, self.group.least_spread)
        return self.may_be_late or max(spread - least, time.monotonic() - self.posted) > FIRST_SLICE

    def _compute(self, agreed: Agreed, data: Sequence[Any]) -> None:
        """Compute the result from the data that arrived with the fingerprints."""
        if self.version is not None and self.outputs is not None:  # the result might be written over the input
            if self.inputs._version != self.version:
                tell_change(self)
            self.version = None
        self.outputs = agreed.compute(self.plan, data, self.outputs)
        self.version = None if self.caller is None else version_of(self.inputs)
        self.started = True

    def fail(self, failure: CollshimError) -> None:
        """Fail this call with ``failure``."""
        self.failure = failure
        self.started = True
        self.group.deferred.append(self)

    def _is_over(self) -> bool:
        if not self.started:
            self.group.advance()
        if self.failure is not None or (self.started and (self.work is None or self.work.is_completed())):
            return True
        self._poll_for_failure()
        return self.failure is not None

    def _complete(self, timeout: float | None) -> Parts | None:
        """See ``Work``; the fast path serves nearly every call, since its data arrives within the first slice."""
        work, group = self.work, self.group
        # the version is read last: another thread, which moves the data, sets it to None before it writes
        if self.version is not None and (self.inputs._version != self.version is not None):
            tell_change(self)
        if work is None or self.on_gpu or (timeout is not None and timeout < FIRST_SLICE):
            return self._complete_slowly(timeout)
        try:
            work.wait(_FIRST_SLICE)
        except RuntimeError as error:  # it takes longer, or it failed
            if is_of_user(error):
                raise
            self._first_slice = OVER
            return self._complete_slowly(None if timeout is None else timeout - FIRST_SLICE)
        if self.finish is not None:
            self._finish()
        self.work = None
        if self.failure is not None or group.deferred:
            return self._complete_slowly(timeout)
        return self.outputs

    def _complete_slowly(self, timeout: float | None) -> Parts | None:
        """Wait until the data has arrived, in slices."""
        limit, group = None if timeout is None else time.monotonic() + timeout, self.group
        try:
            if not self.started:
                group.agree_up_to(self, limit)
            if self.work is not None and self.failure is None:
                if self.on_gpu:
                    self._order_streams()
                else:
                    self.await_work(self.work, limit)
                    self._finish()
        finally:
            if group.deferred:
                group.deferred.discard(self)
        if self.failure is not None:
            raise self._own_failure()
        return self.outputs

    def _finish(self) -> None:
        """Apply ``finish`` once the data has arrived, not before: an interrupted wait may be resumed."""
        finish, self.work, self.finish = self.finish, None, None
        if finish is None:
            return
        try:
            finish(self.outputs)
        except CommunicationError as failure:
            self.fail(failure)
        except BaseException as error:
            self.fail(self._local_failure(error))
            if is_of_handler(error) or not isinstance(error, Exception):
                raise

    def _order_streams(self) -> None:
        """Make this thread's stream follow the data; the host does not wait.

        No deadline is passed: NCCL would wait for it on the host, and end the group when it passes. The stream on which
        the call was posted comes first: it owns the memory that NCCL and ``finish`` read, some of which this wait
        frees, and torch itself copies on it. The work's own event covers none of that.
        """
        stream = self.stream or torch.accelerator.current_stream()
        if self.group.launches.blocks:
            self.group.launches.block(self)
            if self.failure is not None:
                return
        with on_stream(stream):
            try:
                self.work.wait()
            except RuntimeError as error:
                self.fail(self._local_failure(error))
                return
            self.nccl = self.work
            self._finish()
            self.mark_behind()
        follow(stream, self.outputs)

    def await_work(self, work: Any, limit: float | None) -> None:
        """Wait for one of torch's works."""
        self._await(partial(is_over, work), limit)

    def _await(self, over: Callable[[float], bool], limit: float | None) -> None:
        try:
            watch(self, over, limit, first=self._first_slice)
        except RuntimeError as error:
            if isinstance(error, CollshimError) or is_of_user(error):
                raise
            self._end(PeerError, f"the connection broke: {without_source(error)}", error)

    def check(self) -> None:
        """Raise if the group has ended, or if a rank left or closed it before it made this call."""
        self.raise_if_ended()
        group = self.group
        if group.stalls.never_come(group.key, group.ranks, self.sequence):
            self._end(PeerError, "no other rank will arrive", None)

    def describe(self) -> str:
        """See ``Watched``."""
        group = self.group
        return group.stalls.missing_text(group.key, group.ranks, self.sequence, self.call, ends=False)

    def expire(self) -> None:
        """See ``Watched``."""
        self._end(DeadlineError, "the deadline passed", None)

    def _end(self, kind: type[PeerError] | type[DeadlineError], why: str, cause: BaseException | None) -> None:
        group = self.group
        self.report()
        text = group.stalls.missing_text(group.key, group.ranks, self.sequence, self.call)
        raise group.end(kind, f"{text} ({why})") from cause
