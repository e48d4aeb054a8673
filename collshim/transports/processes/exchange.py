"""One collective between processes: first, where calls are compared, the ranks' fingerprints, and then the data.

Its waits and polls are those of a message too: ``GroupWork``.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.distributed import DistBackendError

from collshim.calls.agreement import objection
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
from collshim.transports.processes.carrier import Agreed, takes_lists
from collshim.transports.processes.fingerprint import Fingerprint, decode
from collshim.transports.processes.group import Group, GroupWork
from collshim.transports.streams import follow, on_stream, stream_to_follow
from collshim.transports.waiting import FIRST_SLICE, watch

_IN_LISTS = ("sum", "prod", "min", "max")
_FIRST_SLICE = timedelta(seconds=FIRST_SLICE)
_OVER = 0.001
"""Seconds of a first slice that has been waited for already."""


class Exchange(GroupWork):
    """A posted collective.

    Attributes:
        caller: where it was called, where the ranks tell each other.
        fingerprints: torch's work that gathers all ranks', where to, and their number; None where calls are not
            compared.
        agreed: the ranks' calls, once they agreed; None if the ranks did not exchange them.
        is_inline: whether this rank knows that all data travels in the fingerprints, if the calls agree.
        started: whether the data is on its way, or the call has failed.
        posted: when a call that is compared was; ``may_be_late``: whether this rank stayed away for long before.
    """

    outputs: Parts | None
    agreed: Agreed | None = None
    started = True
    is_inline = False
    fingerprints: tuple[Any, Tensor, int] | None = None
    posted, may_be_late = 0.0, False
    _first_slice = FIRST_SLICE
    _on_gpu = False

    def __init__(
        self, group: Group, plan: Plan, sequence: int, outputs: Parts | None, work: Any = None, finish: Any = None
    ) -> None:
        """``work`` and ``finish`` are those of data on its way: torch's, and what is left to do with the outputs."""
        self.group = group
        self.plan = plan
        self.sequence = sequence
        self.outputs = outputs
        self.work = work
        self.finish: Finish | None = finish
        self._claim = True

    def set_inputs(self, inputs: Parts | None, caller: Caller | None) -> None:
        """What this rank gives, where the data is not on its way yet."""
        plan = self.plan
        self.started = False
        self.inputs, self.caller, self.joint = inputs, caller, plan.call.needs_grad
        if caller is not None and type(inputs) is Tensor and not inputs.is_inference():
            self.version = inputs._version
        if not plan.on_cpu or plan.call.device == "any":
            self.stream = stream_to_follow(plan.call, plan.device)

    def start(self) -> None:
        """Put the data on its way; the calls agree, or were not compared. Failures are kept for ``wait``."""
        group = self.group
        if self.version is not None and self.inputs._version != self.version:
            tell_change(self)
        try:
            agreed = self.agreed or self._assumed()
            self._on_gpu = agreed.is_on_gpu
            start = agreed.transfer or agreed.prepare(self.plan)
            if self._on_gpu:
                group.launches.meet(self, agreed.device)
                group.launches.mark()
            port = group.connected_gpu_port() if self._on_gpu else group.data_group
            self.outputs, work, finish = start(port, self.inputs, self.outputs)
        except (DeadlineError, PeerError) as failure:  # of the ranks that meet before NCCL connects them
            self.fail(failure)
            return
        except Exception as error:
            self.fail_to_start(error)
            return
        if not self._on_gpu:
            group.latest = work
        else:
            self.stream = self.stream or torch.accelerator.current_stream()  # it was not in use here before
            self.launch = group.launches.add(self, work, self.stream)
        self.work, self.finish, self.started = work, finish, True
        self.version = None if self.caller is None else version_of(self.inputs)  # what was written till now is ours

    def fail_to_start(self, error: Exception) -> None:
        """The data could not be put on its way: the group has ended, or NCCL, or memory, say."""
        self.group.refuse_if_broken()
        self.fail(self._local_failure(error))  # and not raise it: the progress thread must outlive it

    def _local_failure(self, error: BaseException) -> CommunicationError:
        """For what this rank could not do, though the others may have; on CUDA they wait in NCCL, so the group ends."""
        if isinstance(error, CommunicationError):
            return error
        if isinstance(error, DistBackendError):
            return self.group.end(PeerError, f"{self.call}: NCCL failed: {error}")
        if self._on_gpu:
            return self.group.end(PeerError, f"{self.call} on rank {self.group.rank}: {described(error)}")
        return local_failure(self.plan.call.op, error)

    def _assumed(self) -> Agreed:
        """Assume that every rank makes the same call as this one: the ranks did not exchange their calls."""
        plan, carrier = self.plan, self.plan.carrier
        agreed: Agreed | None = carrier.agreed
        if agreed is None:
            agreed = Agreed(plan)
            carrier.transfer = agreed.prepare(plan)
            takes_place = agreed.is_on_gpu and not agreed.is_ragged
            self.group.starts(plan, agreed.prepared(plan, is_in_line=True) if takes_place else None)
            carrier.agreed, carrier.takes_lists = agreed, takes_lists(plan.call)
        return agreed

    def _start_behind(self) -> None:
        """``start`` from whatever thread, behind the stream that the call was posted on."""
        with on_stream(self.stream):
            self.start()

    def has_arrived(self) -> bool:
        """Whether the ranks' fingerprints are here."""
        return self.fingerprints is None or bool(self.fingerprints[0].is_completed())

    def agree(self, limit: float | None) -> None:
        """Wait for the fingerprints, compare the calls, and let the data start; failures are kept for ``wait``."""
        if self.fingerprints is None:
            self._start_behind()
            return
        fingerprints = self._received(*self.fingerprints, limit)
        group, carrier, calls = self.group, self.plan.carrier, [fingerprint.call for fingerprint in fingerprints]
        if self._may_be_given_up([fingerprint.posted for fingerprint in fingerprints]):
            self.raise_if_ended()
        agreed: Agreed | None = carrier.agreed
        if agreed is None or agreed.calls != calls:
            if (failure := objection(calls, group.ranks)) is not None:
                self.fail(failure)
                return
            agreed = carrier.agreed = Agreed(self.plan, calls, group.ranks if group.compares_sites else None)
        self.agreed, self.joint = agreed, agreed.joint
        if agreed.sites and self.caller:
            self.warn(partial(warn_at, self.caller, agreed.sites))
        data = [fingerprint.data for fingerprint in fingerprints]
        if None in data:
            self._start_behind()
            return
        try:
            self._compute(agreed, data)
        except Exception as error:
            self.fail(self._local_failure(error))

    def _received(self, work: Any, gathered: Tensor, number: int, limit: float | None) -> list[Fingerprint]:
        """Wait for the fingerprints and decode them."""
        self.await_work(work, limit)
        try:
            return decode(gathered, self.group.signing_key, number, self.group.rank)
        except (ValueError, struct.error) as error:
            raise self.group.end(PeerError, f"{self.call}: {error}") from error

    def _may_be_given_up(self, posted: Sequence[float]) -> bool:
        """Whether some rank came so much later than another that this one may have given the call up.

        Each rank's clock is its own: it looks at how long it stayed away and waits itself, and at how much farther
        apart the ranks' posts are than in the call that they came to most together.
        """
        spread = max(posted) - min(posted)
        self.group.least_spread = least = min(spread, self.group.least_spread)
        return self.may_be_late or max(spread - least, time.monotonic() - self.posted) > FIRST_SLICE

    def _compute(self, agreed: Agreed, data: Sequence[Any]) -> None:
        """All data came with the fingerprints."""
        if self.version is not None and self.outputs is not None:  # the result may go to where the input is
            if self.inputs._version != self.version:
                tell_change(self)
            self.version = None
        self.outputs = agreed.compute(self.plan, data, self.outputs)
        self.started = True

    def fail(self, failure: CollshimError) -> None:
        """This call ends with ``failure``."""
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
        """See ``Work``; first the way of nearly every call, whose data comes within the first slice."""
        work, group = self.work, self.group
        if self.version is not None and self.inputs._version != self.version:
            tell_change(self)
        if work is None or self._on_gpu or (timeout is not None and timeout < FIRST_SLICE):
            return self._complete_slowly(timeout)
        try:
            work.wait(_FIRST_SLICE)
        except RuntimeError as error:  # it takes longer, or has failed
            if is_of_user(error):
                raise
            self._first_slice = _OVER
            return self._complete_slowly(timeout)
        if self.finish is not None:
            self._finish()
        self.work = None
        if self.failure is not None or group.deferred:
            return self._complete_slowly(timeout)
        return self.outputs

    def _complete_slowly(self, timeout: float | None) -> Parts | None:
        """Wait until the data is here, in slices."""
        limit, group = None if timeout is None else time.monotonic() + timeout, self.group
        try:
            if not self.started:
                group.agree_up_to(self, limit)
            if self.work is not None and self.failure is None:
                if self._on_gpu:
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
        """Do what is left once the data is here; not before: an interrupted wait may be resumed."""
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
        """This thread's stream follows the data; the host goes on.

        No deadline is given: NCCL would wait for it on the host, and end the group when it is over. The stream that
        the call was posted on comes first: it owns the memory that NCCL and what is left to do read, some of it freed
        by this wait, and torch itself copies on it. The work's own event covers none of that.
        """
        stream = self.stream or torch.accelerator.current_stream()
        if self.group.launches.blocks:
            self.group.launches.stand(self)
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
        try:
            watch(self, partial(is_over, work), limit, first=self._first_slice)
        except RuntimeError as error:
            if isinstance(error, CollshimError) or is_of_user(error):
                raise
            self._end(PeerError, f"the connection broke: {without_source(error)}", error)

    def look(self) -> None:
        """Raise if the group has ended, or a rank has left, or has closed it, before it came to this call."""
        self.raise_if_ended()
        group = self.group
        if group.stalls.never_come(group.key, group.ranks, self.sequence):
            self._end(PeerError, "nobody else will come", None)

    def whom(self) -> str:
        """See ``Watched``."""
        group = self.group
        return group.stalls.missing_text(group.key, group.ranks, self.sequence, self.call, ends=False)

    def expire(self) -> None:
        """See ``Watched``."""
        self._end(DeadlineError, "the deadline passed", None)

    def _end(self, kind: type[PeerError] | type[DeadlineError], why: str, cause: BaseException | None) -> None:
        group = self.group
        self.tell()
        text = group.stalls.missing_text(group.key, group.ranks, self.sequence, self.call)
        raise group.end(kind, f"{text} ({why})") from cause
