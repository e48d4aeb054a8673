"""A process's end of a group as its collectives, its messages and the progress thread see it; and a group's calls."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Protocol

import torch

from collshim.calls.call import Call
from collshim.calls.pending import PendingCalls
from collshim.calls.plan import Plan
from collshim.calls.site import Caller
from collshim.errors import (
    BrokenCommunicatorError,
    CollshimError,
    CommunicationError,
    DeadlineError,
    PeerError,
    again,
)
from collshim.transports.rendezvous.stalls import StallInspector
from collshim.transports.waiting import FIRST_SLICE, Watched
from collshim.work import DeferredErrors, Work


class Group(Protocol):
    """The interface that a ``ProcessTransport`` has for its calls; see ``ProcessTransport``."""

    rank: int
    size: int
    ranks: tuple[int, ...]
    key: str
    checks: bool
    compares_sites: bool
    checks_on_cuda: bool
    deferred: DeferredErrors
    pending: PendingCalls
    stalls: StallInspector
    data_group: Any
    latest: Any
    signing_key: bytes
    launches: Any
    gpu_port: Any
    sequence: int
    posting: Any
    least_spread: float
    shared: Any
    header_bytes: int
    agreeing: Any
    last_post: float
    last_step: float

    def set_in_line(self, plan: Plan) -> None:
        """Let the core start and finish a plan's calls, which have agreed before, if their callers wait immediately."""

    def set_start(self, plan: Plan, in_line: Any) -> None:
        """Set how a plan of calls that are not compared is started; ``in_line`` moves data in the caller's stream."""

    def connected_gpu_port(self) -> Any:
        """Return ``gpu_port``, and set it at the first call."""

    def is_usable(self) -> bool:
        """Return whether the group has neither failed nor been closed."""
        raise NotImplementedError

    def refuse_if_broken(self) -> None:
        """Raise an error if an earlier failure ended the group."""

    def note_reported(self) -> None:
        """Note that an error reports to the program why the group ended, if it has."""

    def agree_up_to(self, exchange: Any, limit: float | None) -> None:
        """Let all calls up to this one agree and start, in the order in which they were posted."""

    def queued(self) -> Any:
        """Return the posted calls that have not agreed yet."""

    def put_first(self, exchange: Any) -> None:
        """Queue a posted call before all others."""

    def advance(self) -> bool:
        """Start every call that can start, without waiting; return whether more are left."""
        ...

    def advance_leftovers(self) -> bool:
        """Call ``advance`` for calls that no one has waited for since their post; return whether more are left."""
        ...

    def end(self, kind: type[CommunicationError], text: str) -> CommunicationError:
        """End the group on all ranks; return the failure to raise."""
        ...


class GroupWork(Work[Any], Watched):
    """A call of a group, as its own rank waits for it and polls it.

    Attributes:
        sequence: its number among the group's collectives; 0 for a message.
        work: torch's work for the data; None if no data moves. ``nccl``: the same after the wait, if NCCL moves it.
        failure: why the call failed, or None.
        launch: the record of a call that was passed to NCCL, else None.
        stream: the stream of the post, for a call that might be on a GPU, else None.
    """

    group: Group
    plan: Plan
    caller: Caller | None = None
    sequence = 0
    sequence_counts = True
    launch: Any = None
    stream: torch.Stream | None = None
    work: Any = None
    nccl: Any = None
    failure: CollshimError | None = None
    _channel = ""
    _next_check: float | None = None

    @property
    def call(self) -> Call:
        """The call, with the line that made it if the ranks exchange lines."""
        call = self.plan.call
        return call if self.caller is None else call._replace(site=self.caller.site())

    def fail(self, failure: CollshimError) -> None:
        """Fail this call with ``failure``."""
        raise NotImplementedError

    def _is_late(self) -> bool:
        """Check a polled call's deadline; for calls that were passed to NCCL, the process's launch watch does that."""
        return self.launch is None and super()._is_late()

    def _wait_again(self, timeout: float | None) -> None:
        """See ``Work``: NCCL's call might have been aborted in the meantime."""
        if self.failure is not None and self._failure is None:
            self.group.deferred.discard(self)
            self._failure = self._own_failure()

    def _raise(self, failure: Exception) -> None:
        if isinstance(failure, DeadlineError | PeerError | BrokenCommunicatorError):
            self.group.note_reported()
        super()._raise(failure)

    def mark_behind(self) -> None:
        """Drop torch's work: the post's stream now follows NCCL's data, so its position shows whether that is over."""
        self.group.launches.let_go(self, self.delivery.timeout)

    def _own_failure(self) -> CollshimError:
        return again(self.failure)

    def _poll_for_failure(self) -> None:
        """Call ``check`` now and then, since a rank that polls does not wait; keep its error for ``wait``."""
        now, next_check = time.monotonic(), self._next_check
        if next_check is not None and now < next_check:
            return
        self._next_check = now + FIRST_SLICE
        if next_check is None:
            return
        try:
            self.check()
        except CommunicationError as failure:
            self.fail(failure)
        finally:
            self.clear()

    def report(self) -> None:
        """See ``Watched``."""
        self.group.stalls.post(f"{self.group.key}{self._channel}", self.sequence, self.call, self.awaited())

    def awaited(self) -> Sequence[int]:
        """Return the global ranks that this call can wait for."""
        return self.group.ranks

    def clear(self) -> None:
        """See ``Watched``."""
        self.group.stalls.clear()

    def raise_if_ended(self, outputs: Any = None) -> None:
        """Raise an error if another rank has ended the group; it takes the outputs so as to serve as ``finish``."""
        failure = self.group.stalls.ended(self.group.key)
        if failure is not None:
            raise self.group.end(PeerError, failure[1])
