"""What NCCL was given by a rank of a group, and what becomes of it.

NCCL itself waits without a deadline, on the GPU and, while it connects the ranks, on the host. So the ranks meet before
they let it connect them, and a thread looks after the calls that it was given.
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
"""Seconds between two looks at what NCCL has not finished."""

_RANKS_PER_SECOND = 64
"""So many ranks may tell the store in a second how far they have come."""

_TOLD_AFTER = 0.5
"""Seconds after which a rank has told how far it has come."""

_PATIENCE = 10
"""A call to which all ranks have come is given up after this many deadlines: its GPU may have other work before it."""

_RELAXED = 2
"""cudaStreamCaptureModeRelaxed."""


_SEQUENCE = attrgetter("sequence")


class Launches:
    """The calls of one rank in one group that NCCL was given, and that may not be over yet.

    Attributes:
        in_line: those that took their place in their callers' streams, or were waited for, since the last look.
        unwaited: the works of the others since the last look, which nobody has waited for, with their streams.
        are_watched: whether the watch will look at them.
        meetings: how often the ranks have met; ``are_used``: whether they were to, all of them or two.
        blocks: whether a wait for a call stands until its data is there.
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
        self._pause = max(_TOLD_AFTER, group.size / _RANKS_PER_SECOND)  # between two words of this rank
        self.meetings = 0
        self.are_used = False
        self._launched = self._told = -1
        self._told_at = float("-inf")
        self._next_look = 0.0

    def meet(self, work: GroupWork, device: torch.device) -> None:
        """Before the first call on a GPU: all ranks have come with theirs, no two with the same, and are connected."""
        number = module().current_device() if device.index is None else device.index
        if number not in self._met:
            key = f"{self._group.key}/gpus/{self.meetings}"
            self.meetings += 1
            self._connect(work, key, range(self._group.size), number, reduce_all)
            self._met.add(number)

    def meet_peer(self, work: GroupWork, peer: int) -> None:
        """``meet`` of the two ranks of a message, which NCCL connects apart from the others."""
        rank = self._group.rank
        if peer not in self._pairs and peer != rank:
            pair = sorted((rank, peer))
            key = f"{self._group.key}/gpus/{pair[0]}-{pair[1]}"
            self._connect(work, key, pair, module().current_device(), message_to(peer, rank))
            self._pairs.add(peer)

    def _connect(self, work: GroupWork, key: str, ranks: Sequence[int], number: int, first: First) -> None:
        """The ranks meet, and let NCCL connect them; if this rank is interrupted meanwhile the group ends for all."""
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
            self._group.was_told()
            raise

    def add(self, work: GroupWork, mark: Any, stream: torch.Stream) -> Launch | None:
        """NCCL was given this call; None where it is captured into a graph, and given with each replay."""
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
        """Keep a launch of each call that NCCL was given since this was last done, in the order of their numbers."""
        if self.in_line or self.unwaited:
            with self._taking:
                self._take_all()

    def _take_all(self) -> None:
        found = [Launch(*self.in_line.popleft()) for _ in range(len(self.in_line))]
        self._unmarked.extend(found)
        unwaited = list(self.unwaited.items())
        found += [launch for work, stream in unwaited if (launch := self._taken(work, stream)) is not None]
        if found:
            found.sort(key=_SEQUENCE)
            self._launched = found[-1].sequence
            self._pending.extend(found)

    def _taken(self, work: GroupWork, stream: torch.Stream) -> Launch | None:
        """A launch of a call that nobody has waited for; None where somebody just has, who puts it in line."""
        launch = work.launch = Launch.of(work, work.work, stream)
        if self.unwaited.pop(work, None) is None:
            return None
        if launch.mark is None:  # its wait was interrupted, or is about to let it go
            self._unmarked.append(launch)
        return launch

    def let_go(self, work: GroupWork, seconds: float | None) -> None:
        """The call's stream follows the data now, so that its memory need not be kept, nor torch's work."""
        stream = self.unwaited.pop(work, None)
        if stream is not None:
            self.in_line.append((work.plan.call, work.caller, work.sequence, stream, seconds, weakref.ref(work)))
            if not self.are_watched:
                self.watch()
            return
        launch: Launch | None = work.launch
        if launch is None:  # it is captured
            return
        launch.seconds = seconds
        launch.mark = event_on(launch.stream) if launch.peers else None  # nobody tells how many messages have come
        launch.marked = time.monotonic()
        if launch.mark is None:
            self._unmarked.append(launch)

    def let_go_of_works(self) -> None:
        """Keep no work that the program has let go of, which would keep the work's communicator."""
        with self._finding:
            self._take()

    def mark(self) -> None:
        """Put an event behind what is on its way now.

        To be called before a message is: it may be that it never ends, and nobody knows whether its peer has come.
        """
        with self._finding:
            self._take()
            if self._unmarked:
                self._mark()

    def stand(self, work: GroupWork) -> None:
        """With TORCH_NCCL_BLOCKING_WAIT a wait ends when the data is there, or the call has failed.

        Torch would wait on the host as long as its own deadline, and Ctrl-C would not reach it.
        """
        while work.failure is None and work.work is not None and not (is_capturing() or work.work.is_completed()):
            time.sleep(_PAUSE)

    def watch(self) -> None:
        """Look after the calls, until the last of them is over."""
        self.are_watched = True
        LAUNCH_WATCH.watch(self)

    def are_over(self) -> bool:
        """Whether the GPU is done with all of them."""
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
        """Put an event behind the calls that were waited for, one on each of their streams.

        That costs more than all else that is kept of a call, so it is not done for each, but when somebody asks. What
        was posted behind them meanwhile has to be over too. A stream that is captured now is left for later.
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
        """The group has ended, and what was on its way fails; whether anything was."""
        with self._finding:
            self._take()
            with contextlib.suppress(RuntimeError):  # of a GPU that takes no events any more
                self._mark()
            pending, self._pending = self._pending, deque()
            self._unmarked.clear()
        lost = [launch for launch in pending if not launch.is_over()]
        for launch in lost:
            launch.fail(failure)
        return bool(lost)

    def tell(self) -> None:
        """Say in the store how far this rank has come."""
        self._take()
        if self._told != self._launched:
            self._told = self._launched
            self._told_at = time.monotonic()
            self._world.client.post(self._key(self._group.rank), str(self._told))

    def look(self) -> bool:
        """Tell, and end the group where nothing can come of the first call any more; whether there is more to do."""
        self.are_watched = False  # what is added from here on asks to be watched again
        has_more = self._look()
        self.are_watched = self.are_watched or has_more
        return has_more

    def _look(self) -> bool:
        now, over = time.monotonic(), self.are_over()
        if now - self._told_at >= self._pause:
            self.tell()
        if over:
            return self._told != self._launched
        try:
            first = self._pending[0]
        except IndexError:  # the group ended meanwhile
            return False
        if first.posted is None:  # its stream is captured
            first.posted = now
        if first.limit is None:
            first.limit = first.posted + self._seconds(first)
        if now - first.posted >= FIRST_SLICE and now >= self._next_look:
            self._next_look = now + FIRST_SLICE
            self._look_at_others(first)
            if now >= first.limit + self._pause + _PAUSE:  # who came before the deadline has told so
                self._expire(first)
        return bool(self._pending)

    def _look_at_others(self, first: Launch) -> None:
        failure = self._group.stalls.ended(self._group.key)
        if failure is not None:
            self._group.end(PeerError, failure[1])
            return
        _, absent = self._awaiting(first, self._sharing(first))
        left = any(self._group.stalls.any_left([self._group.ranks[rank]], self._group.key) for rank in absent)
        if left and not first.is_over():  # who leaves tells before how far it came
            launch, absent = self._awaiting(first, self._sharing(first))
            if absent:
                self._group.end(PeerError, self._text(launch, absent, "nobody else will come"))

    def _expire(self, first: Launch) -> None:
        """The deadline of the first call has passed; perhaps not that of the first to which a rank has not come."""
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
        """What its caller gives it."""
        work = launch.work()
        seconds = launch.seconds if work is None else work.delivery.timeout
        return float(self._world.timeout if seconds is None else seconds)

    def _sharing(self, first: Launch) -> list[Launch]:
        """``first``, and the calls that may stand before its event on a stream."""
        marked = float("-inf") if first.marked is None else first.marked
        posted = ((launch, launch.posted) for launch in list(self._pending))
        return [launch for launch, when in posted if launch is first or (when is not None and when <= marked)]

    def _awaiting(self, first: Launch, launches: Sequence[Launch]) -> tuple[Launch, list[int]]:
        """Of these calls the first to which a rank has not come, and those ranks; ``first`` and none if all have come.

        As far as the ranks have told. Of a message, which has no number, nothing is known but whom it waits for.
        """
        ranks, own = range(self._group.size), self._group.rank
        if first.peers:
            return first, [self._group.ranks.index(peer) for peer in first.peers]
        try:
            told = self._world.client.get([self._key(rank) for rank in ranks])
        except (StoreSilentError, DistNetworkError):
            return first, []
        come = {rank: int(word) if word else -1 for rank, word in zip(ranks, told, strict=True) if rank != own}
        for launch in launches:
            absent = [rank for rank, sequence in come.items() if sequence < launch.sequence and not launch.peers]
            if absent:
                return launch, absent
        return first, []

    def _text(self, first: Launch, absent: Sequence[int], why: str) -> str:
        group = self._group
        where = [(rank, group.stalls.whereabouts(group.ranks[rank], group.key)) for rank in absent]
        if first.peers:
            peers = "; ".join(f"rank {rank} {place}" for rank, place in where)
            text = f"{first.text()} on rank {group.rank}: the data did not move, {why}: {peers}"
            return text + in_the_world(group.ranks)
        return f"{missing_text(first.text(), where, [], group.ranks)} ({why})"

    def _key(self, rank: int) -> str:
        return f"{self._group.key}/launched/{rank}"

    def keys(self) -> list[str]:
        """What the ranks of the group have left in the store."""
        ranks = range(self._group.size)
        meetings = [f"{self._group.key}/gpus/{number}/{rank}" for number in range(self.meetings) for rank in ranks]
        return [*meetings, *(self._key(rank) for rank in ranks if self.meetings)]


def _is_set(variable: str) -> bool:
    """Whether torch takes a variable of the environment for true."""
    return os.environ.get(variable, "").lower() in ("1", "t", "true", "y", "yes")


def _let_others_capture() -> None:
    """This thread may ask events while another one captures a graph in CUDA's strictest mode, which forbids it."""
    major = str(torch.version.cuda).partition(".")[0]
    with contextlib.suppress(OSError, AttributeError):  # of a torch that has the runtime in itself
        runtime = ctypes.CDLL(f"libcudart.so.{major}")
        runtime.cudaThreadExchangeStreamCaptureMode(ctypes.byref(ctypes.c_int(_RELAXED)))


LAUNCH_WATCH = ProgressThread("collshim-launches", _PAUSE, Launches.look, set[Launches](), _let_others_capture)
"""Looks after what NCCL was given."""
