"""One process's end of a group, as its collectives, its messages and the progress thread see it; and its calls."""

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
    """What a ``ProcessTransport`` is to what travels in it; see there."""

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

    def starts(self, plan: Plan, in_line: Any) -> None:
        """Let a plan of calls that are not compared have what starts them; ``in_line`` moves data in their stream."""

    def connected_gpu_port(self) -> Any:
        """``gpu_port``, once there is a call for it."""

    def refuse_if_broken(self) -> None:
        """Raise where an earlier failure ended the group."""

    def was_told(self) -> None:
        """An error that the program gets says why the group ended, if it has."""

    def agree_up_to(self, exchange: Any, limit: float | None) -> None:
        """Let every call up to this one agree and start, in the order in which they were posted."""

    def advance(self) -> bool:
        """Let what can start do so, without waiting; whether there is more to come."""
        ...

    def advance_leftovers(self) -> bool:
        """``advance`` of calls that nobody has waited for since they were posted; whether there is more to come."""
        ...

    def end(self, kind: type[CommunicationError], text: str) -> CommunicationError:
        """End the group on all ranks; the failure to raise."""
        ...


class GroupWork(Work[Any], Watched):
    """A call of a group, as its own rank waits for it and polls it.

    Attributes:
        sequence: its number among the group's collectives; 0 for a message.
        work: torch's, of the data; None where none moves. ``nccl``: the same once it was waited for, if NCCL moves it.
        failure: why the call failed, or None.
        launch: what is kept of a call that NCCL was given, else None.
        stream: where it was posted, of a call that may be on a GPU, else None.
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
    _next_look: float | None = None

    @property
    def call(self) -> Call:
        """The call, with the line it was made at where the ranks tell each other."""
        call = self.plan.call
        return call if self.caller is None else call._replace(site=self.caller.site())

    def fail(self, failure: CollshimError) -> None:
        """This call ends with ``failure``."""
        raise NotImplementedError

    def _is_late(self) -> bool:
        """Polled past its deadline: of what NCCL was given the process's watch finds that out."""
        return self.launch is None and super()._is_late()

    def _wait_again(self, timeout: float | None) -> None:
        """See ``Work``: NCCL's call may have been aborted since."""
        if self.failure is not None and self._failure is None:
            self.group.deferred.discard(self)
            self._failure = self._own_failure()

    def _raise(self, failure: Exception) -> None:
        if isinstance(failure, DeadlineError | PeerError | BrokenCommunicatorError):
            self.group.was_told()
        super()._raise(failure)

    def mark_behind(self) -> None:
        """The stream of the post follows NCCL's data now: its place says when that is over, and torch's work can go."""
        self.group.launches.let_go(self, self.delivery.timeout)

    def _own_failure(self) -> CollshimError:
        return again(self.failure)

    def _poll_for_failure(self) -> None:
        """``look``, now and then, since who polls does not wait; what it raises is kept for ``wait``."""
        now, next_look = time.monotonic(), self._next_look
        if next_look is not None and now < next_look:
            return
        self._next_look = now + FIRST_SLICE
        if next_look is None:
            return
        try:
            self.look()
        except CommunicationError as failure:
            self.fail(failure)
        finally:
            self.clear()

    def tell(self) -> None:
        """See ``Watched``."""
        self.group.stalls.post(f"{self.group.key}{self._channel}", self.sequence, self.call, self.awaited())

    def awaited(self) -> Sequence[int]:
        """The global ranks that may be waited for."""
        return self.group.ranks

    def clear(self) -> None:
        """See ``Watched``."""
        self.group.stalls.clear()

    def raise_if_ended(self, outputs: Any = None) -> None:
        """Raise where another rank has ended the group, in what may be left to do of a call too."""
        failure = self.group.stalls.ended(self.group.key)
        if failure is not None:
            raise self.group.end(PeerError, failure[1])
