"""One call that NCCL was given: whether the GPU is done with it, and who is told if it fails."""

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
"""What ``Launch`` is made of."""


class Launch:
    """A call that NCCL was given. It holds none of the call's memory once the call was waited for.

    Attributes:
        call: the call, without the line it was made at.
        caller: where that is, where the ranks tell each other.
        sequence: its number among the group's collectives; ``peers``: whom a message, which has none, waits for.
        owner: a reference to its work, which does not keep the work; None if nobody was given one.
        stream: the stream that the call was posted on.
        mark: what says whether the GPU is done with it: torch's work, or an event that was put behind it on ``stream``
            when somebody asked; None where nobody has.
        marked: when the event was put there, a time of ``time.monotonic``; None for torch's work.
        posted: when it was posted, or was first seen.
        seconds: what its caller gives it; None where that is the world's deadline.
        limit: when it is to be over; None where the deadline was not asked yet.
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
        self.call = call  # not the plan, which may have memory of its own
        self.caller = caller
        self.sequence = sequence
        self.stream = stream
        self.seconds = seconds
        self.owner = owner

    @classmethod
    def of(cls, work: GroupWork, mark: Any, stream: torch.Stream) -> Launch:
        """The launch of a call whose work the caller is about to get."""
        launch = cls(work.plan.call, work.caller, work.sequence, stream, None, weakref.ref(work))
        launch.mark, launch.posted = mark, time.monotonic()
        return launch

    def text(self) -> str:
        """The call, with the line it was made at where the ranks tell each other."""
        return str(self.call if self.caller is None else self.call._replace(site=self.caller.site()))

    def work(self) -> GroupWork | None:
        """Its work, if the program still has it."""
        return None if self.owner is None else self.owner()

    def is_over(self) -> bool:
        """Whether the GPU is done with it."""
        work = self.work()
        mark = self.mark if work is None or work.nccl is None else work.nccl
        try:
            return mark is not None and bool(mark.query() if type(mark) is torch.Event else mark.is_completed())
        except RuntimeError:  # it has failed, and its wait says so
            return True

    def fail(self, failure: CollshimError) -> None:
        """Its work fails, if the program still has it: a work that was waited for too, since no data came."""
        work = self.work()
        if work is None:
            return
        if work.is_settled:
            work.failure = failure
        else:
            work.fail(failure)


def event_on(stream: torch.Stream) -> torch.Event | None:
    """An event at the stream's end; None where the stream is captured into a graph, which would take the event in."""
    with on_stream(stream):
        if is_capturing():
            return None
        event = torch.Event(device=ACCELERATOR)
        event.record(stream)
    return event
