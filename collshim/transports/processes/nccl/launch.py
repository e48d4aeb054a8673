"""One call that was passed to NCCL: whether the GPU has finished it, and which work its failure belongs to."""

from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from typing import Any

import torch

from collshim.accelerator import ACCELERATOR, is_capturing
from collshim.calls.call import Call
from collshim.calls.site import Caller
from collshim.errors import CollshimError
from collshim.transports.processes.group import GroupWork
from collshim.transports.streams import on_stream

InLineCall = tuple[Call, "Caller | None", int, "torch.Stream", "float | None", "weakref.ref[GroupWork] | None"]
"""The arguments of ``Launch``."""


class Launch:
    """A call that was passed to NCCL. It does not keep the call's memory alive once the call was waited for.

    Attributes:
        call: the call, without the line that made it.
        caller: the line that made it, if the ranks exchange lines.
        sequence: its number among the group's collectives; a message has none. ``peers``: the ranks that a message
            waits for.
        owner: a weak reference to its work; None if no work was returned.
        stream: the stream on which the call was posted.
        mark: shows whether the GPU has finished the call: torch's work, or an event that is recorded after it on
            ``stream`` on demand; None before that.
        marked: when the event was recorded, as a time of ``time.monotonic``; None for torch's work.
        posted: the time when the call was posted, or first seen.
        seconds: the deadline that its caller set; None for the world's.
        limit: the time at which it should be over; None until it is needed.
    """

    mark: Any = None
    marked: float | None = None
    peers: Sequence[int] = ()
    posted: float | None = None
    limit: float | None = None

    def __init__(
        self,
        call: Call,
        caller: Caller | None,
        sequence: int,
        stream: torch.Stream,
        seconds: float | None = None,
        owner: weakref.ref[GroupWork] | None = None,
    ) -> None:
        self.call = call  # not the plan, which might hold memory
        self.caller = caller
        self.sequence = sequence
        self.stream = stream
        self.seconds = seconds
        self.owner = owner

    @classmethod
    def of(cls, work: GroupWork, mark: Any, stream: torch.Stream) -> Launch:
        """Make the launch of a call whose work is about to be returned to the caller."""
        launch = cls(work.plan.call, work.caller, work.sequence, stream, None, weakref.ref(work))
        launch.mark, launch.posted = mark, time.monotonic()
        return launch

    def text(self) -> str:
        """Describe the call, with the line that made it if the ranks exchange lines."""
        return str(self.call if self.caller is None else self.call._replace(site=self.caller.site()))

    def work(self) -> GroupWork | None:
        """Return the call's work, if the program still has it."""
        return None if self.owner is None else self.owner()

    def is_over(self) -> bool:
        """Return whether the GPU has finished the call."""
        work = self.work()
        mark = self.mark if work is None or work.nccl is None else work.nccl
        try:
            return mark is not None and bool(mark.query() if type(mark) is torch.Event else mark.is_completed())
        except RuntimeError:  # it failed; its wait reports that
            return True

    def fail(self, failure: CollshimError) -> None:
        """Fail the call's work, if the program still has it, even after a wait: the data never arrived."""
        work = self.work()
        if work is None:
            return
        if work.is_settled:
            work.failure = failure
        else:
            work.fail(failure)


def event_on(stream: torch.Stream) -> torch.Event | None:
    """Record an event at the stream's end; return None if the stream is being captured into a graph."""
    with on_stream(stream):
        if is_capturing():
            return None
        event = torch.Event(device=ACCELERATOR)
        event.record(stream)
    return event
