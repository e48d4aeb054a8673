"""One call of a group of threads: ranks take their seats, the last one starts the work, all leave when it is done."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import torch

from collshim.call import Call, in_the_world
from collshim.check import objection, objection_to_pair
from collshim.combine import Step, steps
from collshim.errors import CommunicationError, DeadlineError, MismatchError
from collshim.layout import Parts
from collshim.outputs import allocate
from collshim.transports.alike import Signature, serve
from collshim.transports.seat import Seat
from collshim.transports.streams import Crossing, Place

if TYPE_CHECKING:
    from collshim.transports.switchboard import LocalGroup


ALONE = 1 << 21
"""Bytes, of all that the ranks give or of all that they get, up to which the last rank to arrive does the work alone:
to wake the others would take longer. So it does where the work is the GPU's."""


class Meeting:
    """A call in progress.

    Attributes:
        joint: whether some rank needs a gradient, once all have come.
        finished: whether every rank has been served, or the meeting has failed.
        failure: what every rank is to raise; None.
        outputs: the results by seat, once finished.
    """

    def __init__(self, group: LocalGroup, awaited: Sequence[int | None]) -> None:
        self._group = group
        self._awaited = awaited
        self._seats: list[Seat | None] = [None] * len(self._awaited)
        self._empty = len(self._seats)
        self._lock = threading.Lock()
        self._gates: list[threading.Lock] = []
        self._steps: deque[Step] = deque()
        self._running = 0
        self.outputs: list[Parts | None] = [None] * len(self._seats)
        self.failure: CommunicationError | None = None
        self.joint = False
        self.finished = False
        self._crossing: Crossing | None = None

    @property
    def calls(self) -> Sequence[Call]:
        """The calls of the seats that are taken."""
        return [seat.call for seat in self._seats if seat is not None]

    def take(self, place: int, seat: Seat) -> bool:
        """Sit down; whether all seats are taken now. The group's lock is held."""
        self._seats[place] = seat
        self._empty -= 1
        return self._empty == 0

    def seated(self, place: int) -> int | None:
        """The rank that sits at ``place``."""
        seat = self._seats[place]
        return None if seat is None else seat.rank

    def missing(self) -> list[int]:
        """The ranks of the group that have not come."""
        return [
            rank for rank, seat in zip(self._awaited, self._seats, strict=True) if seat is None and rank is not None
        ]

    def could_come(self) -> list[int]:
        """The ranks of which one must come, where it does not matter which."""
        anybody = any(rank is None and seat is None for rank, seat in zip(self._awaited, self._seats, strict=True))
        seated = {seat.rank for seat in self._seats if seat is not None}
        return [rank for rank in range(self._group.size) if rank not in seated] if anybody else []

    def begin(self) -> None:
        """All have come: compare their calls and do the work, together with the ranks that wait."""
        seats = [seat for seat in self._seats if seat is not None]
        signature = seats[0].signature
        if signature is not None and all(seat.signature == signature for seat in seats):
            self._serve(signature, seats)
        else:
            self._begin(seats)

    def _serve(self, signature: Signature, seats: Sequence[Seat]) -> None:
        """All came the short way and ask alike."""
        try:
            self.outputs = list(serve(signature, seats))
        except Exception as error:
            self._fail_with(error)
        else:
            self._finish()

    def _begin(self, seats: list[Seat]) -> None:
        calls = self.calls
        self.joint = any(call.needs_grad for call in calls)
        pair = calls[0].op == "send" and calls[-1].op == "recv"
        ranks = self._group.ranks
        wrong = objection_to_pair(calls[0], calls[1], ranks) if pair else objection(calls, ranks)
        wrong = wrong or _several_gpus(seats)
        if wrong is not None:
            self.fail(wrong)
            return
        try:
            self._crossing = _crossing(seats)
            self._place_outputs(seats, calls, pair)
            work = self._delivery(seats) if pair else steps(calls, [seat.inputs for seat in seats], self.outputs)
            self._run(work, self._crossing is not None or self._is_small(seats))
        except Exception as error:
            self._fail_with(error)

    def _place_outputs(self, seats: list[Seat], calls: Sequence[Call], pair: bool) -> None:
        if pair:
            calls = [calls[0], calls[0]._replace(op="recv")]
        for place, seat in enumerate(seats):
            given = seat.outputs
            wanted = given is None and seat.call.op != "send"
            self.outputs[place] = allocate(calls, place, self._place(seat)) if wanted else given

    def _place(self, seat: Seat) -> torch.device:
        """Where a rank's result goes: to its own array's device, or, where it gave none, to the giver's."""
        giver = self._seats[0 if seat.call.op == "recv" else seat.call.root or 0]
        return giver.device if seat.call.device == "any" and giver is not None else seat.device

    def _delivery(self, seats: list[Seat]) -> list[Step]:
        source, target = seats[0].inputs, self.outputs[1]
        if not isinstance(source, torch.Tensor) or not isinstance(target, torch.Tensor):
            raise AssertionError("send and recv carry one tensor")  # the communicator posts nothing else
        return [partial(target.copy_, source)]

    def _is_small(self, seats: list[Seat]) -> bool:
        given = sum(_bytes(seat.inputs) for seat in seats)
        return max(given, sum(map(_bytes, self.outputs))) <= ALONE

    def _run(self, work: list[Step], alone: bool) -> None:
        if alone or len(work) < 2:
            for step in work:
                step()
            if self._crossing is not None:
                self._crossing.finish()
            self._finish()
        else:
            self._steps.extend(work)
            self._open_gates()
            self.help()

    def help(self) -> None:
        """Take steps until none is left; the last step to end finishes the meeting."""
        with self._lock:
            self._running += 1
        try:
            while (step := self._next_step()) is not None:
                step()
        except Exception as error:
            self._fail_with(error)
        with self._lock:
            self._running -= 1
            over = self._running == 0 and not self._steps and not self.finished
        if over:
            self._finish()

    def _next_step(self) -> Step | None:
        with self._lock:
            return self._steps.popleft() if self._steps else None

    def fail(self, failure: CommunicationError) -> None:
        """Every rank that has come, or waits, gets ``failure``."""
        with self._lock:
            if self.finished:
                return
            self.failure = failure
            self.finished = True
        self._open_gates()

    def wait(self, timeout: float | None) -> None:
        """Wait until finished, helping where there is work.

        Raises nothing itself: past the deadline the whole group fails, with the names of the ranks that did not come.
        """
        limit = None if timeout is None else time.monotonic() + timeout
        while not self.finished:
            gate = self._gate()
            if gate is not None and not gate.acquire(timeout=_left(limit)):
                self._expire(timeout or 0.0)
                limit = None  # either failed now, or everybody has come and somebody computes
            if self._steps and not self.finished:
                self.help()

    def who_did_not_come(self, ranks: Sequence[int]) -> str:
        """The error text that names the absent ranks and where they were instead."""
        board = self._group.board
        told = [f"rank {rank} {board.whereabouts(self._group.ranks[rank])}" for rank in ranks]
        came = [(seat.rank, str(seat.call)) for seat in self._seats if seat is not None]
        if len({call for _, call in came}) > 1:  # then who came may be why the others are elsewhere
            told += [f"rank {rank} came with {call}" for rank, call in came]
        absent = "; ".join(told) + in_the_world(self._group.ranks)
        return f"{self._asked()}: {len(ranks)} of {self._group.size} ranks did not come: {absent}"

    def _asked(self) -> str:
        """What was called; of a letter also by whom, since the other ranks of the group are told of it too."""
        first = next(seat for seat in self._seats if seat is not None)
        return f"{first.call} on rank {first.rank}" if first.call.op in ("send", "recv") else str(first.call)

    def _expire(self, timeout: float) -> None:
        missing = self.missing()
        if not missing and self._empty == 0:
            return  # all have come, and somebody is computing
        absent = self.who_did_not_come(missing) if missing else f"{self._asked()}: no rank sent anything"
        self._group.fail(DeadlineError(f"{absent} (within {timeout:g} s)"))

    def result(self, place: int) -> Parts | None:
        """The outputs of a seat, once finished; this thread's CUDA streams follow what writes them."""
        found = self.outputs[place]
        if self._crossing is not None:
            self._crossing.follow(found)
        return found

    def _gate(self) -> threading.Lock | None:
        gate = threading.Lock()
        gate.acquire()
        with self._lock:
            if self.finished or self._steps:
                return None
            self._gates.append(gate)
        return gate

    def _finish(self) -> None:
        with self._lock:
            self.finished = True
            gates, self._gates = self._gates, []
        for gate in gates:
            gate.release()

    def _open_gates(self) -> None:
        with self._lock:
            gates, self._gates = self._gates, []
        for gate in gates:
            gate.release()

    def _fail_with(self, error: Exception) -> None:
        failure = CommunicationError(f"{self.calls[0].op}: {type(error).__name__}: {error}")
        failure.__cause__ = error
        self._steps.clear()
        self.fail(failure)


def _several_gpus(seats: Sequence[Seat]) -> CommunicationError | None:
    """Threads share one GPU: no kernel reads several."""
    if len({seat.device for seat in seats if seat.stream is not None}) < 2:
        return None
    told = ", ".join(f"rank {seat.rank} on {seat.device}" for seat in seats)
    return MismatchError(f"{seats[0].call.name}: ranks that are threads share one GPU, these are on several: {told}")


def _crossing(seats: Sequence[Seat]) -> Crossing | None:
    if all(seat.stream is None for seat in seats):
        return None
    return Crossing([Place(seat.stream, seat.inputs, seat.outputs) for seat in seats])


def _bytes(parts: Parts | None) -> int:
    if parts is None:
        return 0
    return parts.nbytes if isinstance(parts, torch.Tensor) else sum(part.nbytes for part in parts)


def _left(limit: float | None) -> float:
    return -1 if limit is None else min(threading.TIMEOUT_MAX, max(0.0, limit - time.monotonic()))
