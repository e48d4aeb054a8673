"""``Launches``: the calls that a rank of a group has passed to NCCL, and their deadlines.

NCCL itself waits without a deadline: on the GPU, and on the host while it connects the ranks. So the ranks meet before
they let NCCL connect them, and a thread watches the calls that were passed to NCCL.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import torch
from torch.distributed import DistNetworkError

from collshim.accelerator import is_capturing, module
from collshim.calls.call import in_the_world
from collshim.errors import CollshimError, DeadlineError, PeerError
from collshim.transports.processes.group import Group, GroupWork
from collshim.transports.processes.nccl.connecting import Connecting, First, message_to, reduce_all
from collshim.transports.processes.nccl.launch import InLineCall, Launch, event_on
from collshim.transports.processes.nccl.meeting import Meeting
from collshim.transports.processes.progress import ProgressThread
from collshim.transports.rendezvous.client import StoreSilentError
from collshim.transports.waiting import FIRST_SLICE, missing_text

_PAUSE = 0.02
"""How many seconds pass between two checks of the calls that NCCL has not finished."""

_RANKS_PER_SECOND = 64
"""The number of ranks that may write their progress to the store in one second."""

_REPORT_SECONDS = 0.5
"""The least number of seconds between two reports of a rank's progress."""

_PATIENCE = 10
"""A call that all ranks have made may take this many deadlines, since its GPU might have other work to do first."""

_RELAXED = 2
"""cudaStreamCaptureModeRelaxed."""


_SEQUENCE = attrgetter("sequence")


class Launches:
    """The calls of one rank in one group that were passed to NCCL and might not be over yet.

    Attributes:
        in_line: calls since the last check that run in their callers' streams, or were waited for.
        unwaited: the works of the other calls since the last check, which have not been waited for, with their streams.
        are_watched: whether the launch watch will check them.
        meetings: how often the ranks have met; ``are_used``: whether all ranks, or two of them, ever tried to meet.
        blocks: whether a wait for a call blocks the host until the data has arrived.
    """

    def __init__(self, group: Group, world: Any) -> None:
        self._group = group
        self._world = world
        self._pending: deque[Launch] = deque()
        self._unmarked: deque[Launch] = deque()
        self.in_line: deque[InLineCall] = deque()
        self.unwaited: dict[GroupWork, torch.Stream] = {}
        self._finding, self._taking = threading.Lock(), threading.Lock()
        self.are_watched = False
        self.blocks = _is_set("TORCH_NCCL_BLOCKING_WAIT") or _is_set("NCCL_BLOCKING_WAIT")
        self._met: set[int] = set()
        self._pairs: set[int] = set()
        self._pause = max(_REPORT_SECONDS, group.size / _RANKS_PER_SECOND)  # between two reports of this rank
        self.meetings = 0
        self.are_used = False
        self._launched = self._reported = -1
        self._reported_at = float("-inf")
        self._next_check = 0.0

    def meet(self, work: GroupWork, device: torch.device) -> None:
        """Let all ranks meet and connect before the first call on a GPU; raise if any is missing or two share a GPU."""
        number = module().current_device() if device.index is None else device.index
        if number not in self._met:
            key = f"{self._group.key}/gpus/{self.meetings}"
            self.meetings += 1
            self._connect(work, key, range(self._group.size), number, reduce_all)
            self._met.add(number)

    def meet_peer(self, work: GroupWork, peer: int) -> None:
        """Let the two ranks of a message ``meet``; NCCL connects them separately from the others."""
        rank = self._group.rank
        if peer not in self._pairs and peer != rank:
            pair = sorted((rank, peer))
            key = f"{self._group.key}/gpus/{pair[0]}-{pair[1]}"
            self._connect(work, key, pair, module().current_device(), message_to(peer, rank))
            self._pairs.add(peer)

    def _connect(self, work: GroupWork, key: str, ranks: Sequence[int], number: int, first: First) -> None:
        """Let the ranks meet, and NCCL connect them; if this rank is interrupted meanwhile, end the group for all."""
        self.are_used = True
        seconds = self._world.timeout
        limit = time.monotonic() + seconds
        try:
            Meeting(self._group, self._world, work, key, ranks).hold(number, limit)
            Connecting(self._group, work, ranks, seconds).hold(first, number, limit)
        except Exception:
            raise
        except BaseException as error:
            rank = self._group.rank
            text = f"{work.call}: rank {rank} was interrupted before NCCL had connected it ({type(error).__name__})"
            self._group.end(PeerError, text)
            self._group.note_reported()
            raise

    def add(self, work: GroupWork, mark: Any, stream: torch.Stream) -> Launch | None:
        """Record a call that was passed to NCCL; return None if a graph captures it, whose replays pass it again."""
        if is_capturing():
            return None
        self._take()
        launch = Launch.of(work, mark, stream)
        if work.sequence_counts:
            self._launched = work.sequence
        else:
            launch.peers = work.awaited()
        self._pending.append(launch)
        if not self.are_watched:
            self.watch()
        return launch

    def _take(self) -> None:
        """Make launches of the calls that were passed to NCCL since the last check, in the order of their numbers."""
        if self.in_line or self.unwaited:
            with self._taking:
                self._take_all()

    def _take_all(self) -> None:
        found = [Launch(*self.in_line.popleft()) for _ in range(len(self.in_line))]
        self._unmarked.extend(found)
        unwaited = list(self.unwaited.items())
        found += [launch for work, stream in unwaited if (launch := self._take_one(work, stream)) is not None]
        if found:
            found.sort(key=_SEQUENCE)
            self._launched = found[-1].sequence
            self._pending.extend(found)

    def _take_one(self, work: GroupWork, stream: torch.Stream) -> Launch | None:
        """Make a launch of a call that was not waited for; return None if a wait has just moved it to ``in_line``."""
        launch = work.launch = Launch.of(work, work.work, stream)
        if self.unwaited.pop(work, None) is None:
            return None
        if launch.mark is None:  # its wait was interrupted, or is about to drop torch's work
            self._unmarked.append(launch)
        return launch

    def let_go(self, work: GroupWork, seconds: float | None) -> None:
        """Drop the call's memory and torch's work, since the call's stream now waits for the data."""
        stream = self.unwaited.pop(work, None)
        if stream is not None:
            self.in_line.append((work.plan.call, work.caller, work.sequence, stream, seconds, weakref.ref(work)))
            if not self.are_watched:
                self.watch()
            return
        launch: Launch | None = work.launch
        if launch is None:  # it is being captured
            return
        launch.seconds = seconds
        launch.mark = event_on(launch.stream) if launch.peers else None  # messages have no count to compare
        launch.marked = time.monotonic()
        if launch.mark is None:
            self._unmarked.append(launch)

    def let_go_of_works(self) -> None:
        """Drop works that the program has dropped, because they would keep their communicator alive."""
        with self._finding:
            self._take()

    def mark(self) -> None:
        """Record an event after the calls in progress, so that they can be distinguished from later calls.

        This is called before a further call, which might never end, is passed to NCCL; for a message, it is not known
        whether its peer has arrived. An event recorded after it on the same stream would make the earlier calls seem
        unfinished too.
        """
        with self._finding:
            self._take()
            if self._unmarked:
                self._mark()

    def block(self, work: GroupWork) -> None:
        """Wait until the data has arrived or the call has failed, as TORCH_NCCL_BLOCKING_WAIT demands.

        torch would block the host until its own deadline, and Ctrl-C would not interrupt it.
        """
        while work.failure is None and work.work is not None and not (is_capturing() or work.work.is_completed()):
            time.sleep(_PAUSE)

    def watch(self) -> None:
        """Check the calls from time to time, until the last of them is over."""
        self.are_watched = True
        LAUNCH_WATCH.watch(self)

    def are_over(self) -> bool:
        """Return whether the GPU has finished all of them."""
        with self._finding:
            self._take()
            if self._unmarked:
                self._mark()
            pending = self._pending
            while pending:
                first = pending[0]
                if not first.is_over():
                    return False
                pending.popleft()
            return True

    def _mark(self) -> None:
        """Record an event after the calls that were waited for, on each of their streams.

        A call that was waited for has dropped torch's work, so only an event can show whether the GPU has finished it.
        Recording an event costs more than everything else that is kept about a call. So it is not recorded for each
        call, but once for many, on demand. The disadvantage is that the event also waits for everything that was posted
        on the stream in between. A stream that is being captured is left for later.
        """
        launches = [self._unmarked.popleft() for _ in range(len(self._unmarked))]
        now, events = time.monotonic(), dict[torch.Stream, torch.Event | None]()
        for launch in launches:
            stream = launch.stream
            if stream not in events:
                events[stream] = event_on(stream)
            launch.mark, launch.marked = events[stream], time.monotonic()
            launch.posted = now if launch.posted is None else launch.posted
        self._unmarked.extend(launch for launch in launches if launch.mark is None)

    def fail(self, failure: CollshimError) -> bool:
        """Fail the calls in progress, since the group has ended; return whether there were any."""
        with self._finding:
            self._take()
            with contextlib.suppress(RuntimeError):  # raised by a GPU that accepts no more events
                self._mark()
            pending, self._pending = self._pending, deque()
            self._unmarked.clear()
        lost = [launch for launch in pending if not launch.is_over()]
        for launch in lost:
            launch.fail(failure)
        return bool(lost)

    def tell(self) -> None:
        """Write to the store how many calls this rank has made."""
        self._take()
        if self._reported != self._launched:
            self._reported = self._launched
            self._reported_at = time.monotonic()
            self._world.client.post(self._key(self._group.rank), str(self._reported))

    def step(self) -> bool:
        """Report progress, and end the group if its first call can no longer succeed; return whether more is left."""
        self.are_watched = False  # before the step: calls added meanwhile ask to be watched again
        has_more = self._step()
        self.are_watched = self.are_watched or has_more
        return has_more

    def _step(self) -> bool:
        now, over = time.monotonic(), self.are_over()
        if now - self._reported_at >= self._pause:
            self.tell()
        if over:
            return self._reported != self._launched
        try:
            first = self._pending[0]
        except IndexError:  # the group ended in the meantime
            return False
        if first.posted is None:  # its stream is being captured
            first.posted = now
        if first.limit is None:
            first.limit = first.posted + self._seconds(first)
        if now - first.posted >= FIRST_SLICE and now >= self._next_check:
            self._next_check = now + FIRST_SLICE
            self._check_others(first)
            if now >= first.limit + self._pause + _PAUSE:  # punctual ranks have reported by now
                self._expire(first)
        return bool(self._pending)

    def _check_others(self, first: Launch) -> None:
        failure = self._group.stalls.ended(self._group.key)
        if failure is not None:
            self._group.end(PeerError, failure[1])
            return
        _, absent = self._awaiting(first, self._sharing(first))
        left = any(self._group.stalls.any_left([self._group.ranks[rank]], self._group.key) for rank in absent)
        if left and not first.is_over():  # a rank reports the number of its calls before it leaves
            launch, absent = self._awaiting(first, self._sharing(first))
            if absent:
                self._group.end(PeerError, self._text(launch, absent, "no other rank will arrive"))

    def _expire(self, first: Launch) -> None:
        """Handle the first call's deadline; the first call that some rank has not made can have a different one."""
        launch, absent = self._awaiting(first, list(self._pending))
        if first.is_over() or first.limit is None or not self._pending:
            return
        now, seconds = time.monotonic(), self._seconds(launch)
        if not absent and now < (first.posted or 0.0) + _PATIENCE * seconds:
            first.limit += seconds
            return
        if now >= (launch.posted or now) + seconds + self._pause + _PAUSE:
            self._group.end(DeadlineError, self._text(launch, absent, "the deadline passed"))

    def _seconds(self, launch: Launch) -> float:
        """Return the deadline that a call's caller set, or the world's, in seconds."""
        work = launch.work()
        seconds = launch.seconds if work is None else work.delivery.timeout
        return float(self._world.timeout if seconds is None else seconds)

    def _sharing(self, first: Launch) -> list[Launch]:
        """Return ``first``, and the calls that might precede its event on a stream."""
        marked = float("-inf") if first.marked is None else first.marked
        posted = ((launch, launch.posted) for launch in list(self._pending))
        return [launch for launch, when in posted if launch is first or (when is not None and when <= marked)]

    def _awaiting(self, first: Launch, launches: Sequence[Launch]) -> tuple[Launch, list[int]]:
        """Return the first of these calls that a rank has not made, and those ranks; ``first`` and none if all have.

        The answer rests on the ranks' reports. A message has no number, so only the ranks that it waits for are known.
        """
        ranks, own = range(self._group.size), self._group.rank
        if first.peers:
            return first, [self._group.ranks.index(peer) for peer in first.peers]
        try:
            reports = self._world.client.get([self._key(rank) for rank in ranks])
        except (StoreSilentError, DistNetworkError):
            return first, []
        come = {rank: int(word) if word else -1 for rank, word in zip(ranks, reports, strict=True) if rank != own}
        for launch in launches:
            absent = [rank for rank, sequence in come.items() if sequence < launch.sequence and not launch.peers]
            if absent:
                return launch, absent
        return first, []

    def _text(self, first: Launch, absent: Sequence[int], why: str) -> str:
        group = self._group
        where = [(rank, group.stalls.whereabouts(group.ranks[rank], group.key)) for rank in absent]
        if first.peers:
            peers = "; ".join(f"rank {rank} {text}" for rank, text in where)
            text = f"{first.text()} on rank {group.rank}: the data did not move, {why}: {peers}"
            return text + in_the_world(group.ranks)
        return f"{missing_text(first.text(), where, [], group.ranks)} ({why})"

    def _key(self, rank: int) -> str:
        return f"{self._group.key}/launched/{rank}"

    def keys(self) -> list[str]:
        """Return the keys that the ranks of the group have left in the store."""
        ranks = range(self._group.size)
        meetings = [f"{self._group.key}/gpus/{number}/{rank}" for number in range(self.meetings) for rank in ranks]
        return [*meetings, *(self._key(rank) for rank in ranks if self.meetings)]


def _is_set(variable: str) -> bool:
    """Return whether torch would read an environment variable as true."""
    return os.environ.get(variable, "").lower() in ("1", "t", "true", "y", "yes")


def _let_others_capture() -> None:
    """Let this thread query events while a thread captures a graph in CUDA's strictest mode, which forbids it."""
    major = str(torch.version.cuda).partition(".")[0]
    with contextlib.suppress(OSError, AttributeError):  # this torch links the runtime statically
        runtime = ctypes.CDLL(f"libcudart.so.{major}")
        runtime.cudaThreadExchangeStreamCaptureMode(ctypes.byref(ctypes.c_int(_RELAXED)))


LAUNCH_WATCH = ProgressThread("collshim-launches", _PAUSE, Launches.step, set[Launches](), _let_others_capture)
"""The thread that watches the calls that were passed to NCCL."""
