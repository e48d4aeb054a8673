"""NCCL of a group of processes: who comes to its first call, what it was given, and how it ends.

NCCL itself waits without a deadline, on the GPU and, while it connects the ranks, on the host. So the ranks meet before
they let it connect them, and a thread looks after the calls that it was given.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import threading
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import torch
from torch.distributed import DistNetworkError

from collshim.accelerator import ACCELERATOR, is_capturing, module
from collshim.calls.call import Call, in_the_world
from collshim.errors import CollshimError, CommunicationError, DeadlineError, PeerError
from collshim.transports.processes.client import StoreSilentError
from collshim.transports.processes.group import Group, GroupWork
from collshim.transports.processes.progress import ProgressThread
from collshim.transports.processes.stalls import comes_by
from collshim.transports.waiting import FIRST_SLICE, Watched, missing_text, watch

_PAUSE = 0.02
"""Seconds between two looks at what NCCL has not finished."""

_RANKS_PER_SECOND = 64
"""So many ranks may tell the store in a second how far they have come."""

_TOLD_AFTER = 0.5
"""Seconds after which a rank has told how far it has come."""

_PATIENCE = 10
"""A call to which all ranks have come is given up after this many deadlines: its GPU may have other work before it."""

_SPARE_EVENTS = 64
"""Events that a group keeps for its next calls."""

_RELAXED = 2
"""cudaStreamCaptureModeRelaxed."""


class Launch:
    """A call that NCCL was given. It holds none of the call's memory once that was waited for.

    Attributes:
        mark: what says whether the GPU is done with it: torch's work, then an event behind it.
        limit: when it is to be over, a time of ``time.monotonic``; None where the call's deadline was not asked yet.
    """

    __slots__ = ("_call", "_caller", "_work", "limit", "mark", "peers", "posted", "sequence")

    def __init__(self, work: GroupWork, mark: Any) -> None:
        self._work = weakref.ref(work)
        self._call, self._caller = work.plan.call, work.caller  # not the plan, which may have memory of its own
        self.mark = mark
        self.sequence, self.peers = work.sequence, () if work.sequence_counts else work.awaited()
        self.posted = time.monotonic()
        self.limit: float | None = None

    @property
    def call(self) -> Call:
        """The call, with the line it was made at where the ranks tell each other."""
        call = self._call
        return call if self._caller is None else call._replace(site=self._caller.site())

    def is_over(self) -> bool:
        """Whether the GPU is done with it."""
        try:
            mark = self.mark
            return bool(mark.query() if type(mark) is torch.Event else mark.is_completed())
        except RuntimeError:  # it has failed, and its wait says so
            return True

    def seconds(self, otherwise: float) -> float:
        """What its caller gives it."""
        work = self._work()
        return otherwise if work is None or work._timeout is None else work._timeout

    def fail(self, failure: CollshimError) -> None:
        """Its caller's wait, and its polls, end with ``failure``, where they have not ended yet."""
        work = self._work()
        if work is not None and not work._settled:
            work.fail(failure)


class Launches:
    """The calls of one rank in one group that NCCL was given, and that may not be over yet."""

    def __init__(self, group: Group, world: Any) -> None:
        self._group = group
        self._world = world
        self._pending: deque[Launch] = deque()
        self._finding = threading.Lock()
        self._events: list[torch.Event] = []
        self._met: set[int] = set()
        self._pairs: set[int] = set()
        self._pause = max(_TOLD_AFTER, group.size / _RANKS_PER_SECOND)  # between two words of this rank
        self.meetings = 0
        self._launched = self._told = -1
        self._told_at = float("-inf")
        self._next_look = 0.0

    @property
    def are_used(self) -> bool:
        """Whether NCCL has connected ranks of the group."""
        return bool(self.meetings or self._pairs)

    def meet(self, work: GroupWork, device: torch.device) -> None:
        """Before the first call on a GPU: all ranks have come with theirs, no two with the same."""
        number = module().current_device() if device.index is None else device.index
        if number not in self._met:
            key = f"{self._group.key}/gpus/{self.meetings}"
            self.meetings += 1
            _Meeting(self._group, self._world, work, key, range(self._group.size)).hold(number)
            self._met.add(number)

    def meet_peer(self, work: GroupWork, peer: int) -> None:
        """``meet`` of the two ranks of a message, which NCCL connects apart from the others."""
        rank = self._group.rank
        if peer not in self._pairs and peer != rank:
            pair = sorted((rank, peer))
            key = f"{self._group.key}/gpus/{pair[0]}-{pair[1]}"
            _Meeting(self._group, self._world, work, key, pair).hold(module().current_device())
            self._pairs.add(peer)

    def add(self, work: GroupWork, mark: Any) -> Launch | None:
        """NCCL was given this call; None where it is captured into a graph, and given with each replay."""
        if is_capturing():
            return None
        launch = Launch(work, mark)
        self._pending.append(launch)
        if work.sequence_counts:
            self._launched = work.sequence
        LAUNCH_WATCH.watch(self)
        return launch

    def recorded(self, stream: torch.Stream) -> torch.Event:
        """An event at the stream's end: one that no launch needs any more, or a new one, which costs more."""
        event = self._events.pop() if self._events else torch.Event(device=ACCELERATOR)
        event.record(stream)
        return event

    def are_over(self) -> bool:
        """Whether the GPU is done with all of them."""
        with self._finding:
            pending = self._pending
            while pending:
                first = pending[0]
                if not first.is_over():
                    return False
                pending.popleft()
                if type(first.mark) is torch.Event and len(self._events) < _SPARE_EVENTS:
                    self._events.append(first.mark)
            return True

    def fail(self, failure: CollshimError) -> None:
        """The group has ended: so have they."""
        with self._finding:
            pending, self._pending = self._pending, deque()
        for launch in pending:
            if not launch.is_over():
                launch.fail(failure)

    def tell(self) -> None:
        """Say in the store how far this rank has come."""
        if self._told != self._launched:
            self._told = self._launched
            self._told_at = time.monotonic()
            self._world.client.post(self._key(self._group.rank), str(self._told))

    def look(self) -> bool:
        """Tell, and end the group where nothing can come of the first call any more; whether there is more to do."""
        now, over = time.monotonic(), self.are_over()
        if now - self._told_at >= self._pause:
            self.tell()
        if over:
            return self._told != self._launched
        try:
            first = self._pending[0]
        except IndexError:  # the group ended meanwhile
            return False
        if first.limit is None:
            first.limit = first.posted + first.seconds(self._world.timeout)
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
        absent = self._absent(first)
        left = any(self._group.stalls.any_left([self._group.ranks[rank]]) for rank in absent)
        if left and not first.is_over() and (absent := self._absent(first)):  # who leaves tells before how far it came
            self._group.end(PeerError, self._text(first, absent, "nobody else will come"))

    def _expire(self, first: Launch) -> None:
        """The deadline has passed."""
        absent = self._absent(first)
        if first.is_over() or first.limit is None or not self._pending:
            return
        seconds = first.seconds(self._world.timeout)
        if not absent and time.monotonic() < first.posted + _PATIENCE * seconds:
            first.limit += seconds
            return
        self._group.end(DeadlineError, self._text(first, absent, "the deadline passed"))

    def _absent(self, first: Launch) -> list[int]:
        """The ranks of the group that have not come to this call, as far as they told."""
        ranks = first.peers or range(self._group.size)
        own = self._group.rank
        if first.peers:
            return [self._group.ranks.index(peer) for peer in first.peers]
        try:
            told = self._world.client.get([self._key(rank) for rank in ranks])
        except (StoreSilentError, DistNetworkError):
            return []
        come = [rank for rank, word in zip(ranks, told, strict=True) if word and int(word) >= first.sequence]
        return [rank for rank in ranks if rank != own and rank not in come]

    def _text(self, first: Launch, absent: Sequence[int], why: str) -> str:
        group = self._group
        where = [(rank, group.stalls.whereabouts(group.ranks[rank])) for rank in absent]
        if first.peers:
            peers = "; ".join(f"rank {rank} {place}" for rank, place in where)
            text = f"{first.call} on rank {group.rank}: the data did not move, {why}: {peers}"
            return text + in_the_world(group.ranks)
        return f"{missing_text(str(first.call), where, [], group.ranks)} ({why})"

    def _key(self, rank: int) -> str:
        return f"{self._group.key}/launched/{rank}"

    def keys(self) -> list[str]:
        """What the ranks of the group have left in the store."""
        ranks = range(self._group.size)
        meetings = [f"{self._group.key}/gpus/{number}/{rank}" for number in range(self.meetings) for rank in ranks]
        return [*meetings, *(self._key(rank) for rank in ranks if self.meetings)]


class _Meeting(Watched):
    """Ranks of a group that come to the first call on their GPUs."""

    def __init__(self, group: Group, world: Any, work: GroupWork, key: str, ranks: Sequence[int]) -> None:
        self._group = group
        self._client = world.client
        self._timeout = world.timeout
        self._work = work
        self._keys = {rank: f"{key}/{rank}" for rank in ranks}

    def hold(self, device: int) -> None:
        """Wait for all; raise where some do not come, or two have come with one GPU."""
        self._client.set(self._keys[self._group.rank], _gpu(device), self._timeout)
        watch(self, self._have_come, time.monotonic() + self._timeout)
        gpus = self._told()
        for gpu in gpus.values():
            same = [other for other in gpus if gpus[other] == gpu]
            if len(same) > 1:
                name = " and ".join(map(str, same))
                text = f"{self._work.call}: ranks {name} are on one GPU, {gpu}, should be on one each"
                raise CommunicationError(f"{text} (torch.cuda.set_device){in_the_world(self._group.ranks)}")

    def _told(self) -> dict[int, str]:
        return dict(zip(self._keys, self._client.get([*self._keys.values()]), strict=True))

    def _have_come(self, seconds: float) -> bool:
        keys = [*self._keys.values()]
        return comes_by(lambda: self._has(keys), time.monotonic() + seconds)

    def _has(self, keys: Sequence[str]) -> bool:
        try:
            return bool(self._client.check(*keys))
        except StoreSilentError:
            return False

    def tell(self) -> None:
        """See ``Watched``."""
        self._work.tell()

    def clear(self) -> None:
        """See ``Watched``."""
        self._work.clear()

    def look(self) -> None:
        """Raise where the group has ended, or a rank that is missing has left."""
        self._work.raise_if_ended()
        if any(self._group.stalls.any_left([self._group.ranks[rank]]) for rank in self._absent()):
            raise self._end(PeerError, "nobody else will come")

    def expire(self) -> None:
        """See ``Watched``."""
        raise self._end(DeadlineError, "the deadline passed")

    def _absent(self) -> list[int]:
        try:
            return [rank for rank, gpu in self._told().items() if not gpu]
        except StoreSilentError:
            return []

    def _end(self, kind: type[PeerError] | type[DeadlineError], why: str) -> CommunicationError:
        group = self._group
        where = [(rank, group.stalls.whereabouts(group.ranks[rank])) for rank in self._absent()]
        return group.end(kind, f"{missing_text(str(self._work.call), where, [], group.ranks)} ({why})")


def _gpu(device: int) -> str:
    """What names a GPU among those of all machines."""
    found = module().get_device_properties(device)
    return f"{found.name} {getattr(found, 'uuid', device)} of {socket.gethostname()}"


def _let_others_capture() -> None:
    """This thread may ask events while another one captures a graph in CUDA's strictest mode, which forbids it."""
    major = str(torch.version.cuda).partition(".")[0]
    with contextlib.suppress(OSError, AttributeError):  # of a torch that has the runtime in itself
        runtime = ctypes.CDLL(f"libcudart.so.{major}")
        runtime.cudaThreadExchangeStreamCaptureMode(ctypes.byref(ctypes.c_int(_RELAXED)))


LAUNCH_WATCH = ProgressThread("collshim-launches", _PAUSE, Launches.look, set[Launches](), _let_others_capture)
"""Looks after what NCCL was given."""
