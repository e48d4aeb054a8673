"""One call of a group of threads: ranks arrive, the last one computes, all leave when it is done.

A call completes even if no rank waits for it. Ranks that wait take a share of large computations.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from collshim.accelerator import ACCELERATOR, current_stream
from collshim.calls.agreement import objection
from collshim.calls.allocation import allocator
from collshim.calls.call import Call, in_the_world
from collshim.calls.collective import MESSAGES
from collshim.calls.pending import tell_change
from collshim.calls.plan import Plan
from collshim.calls.site import Caller
from collshim.errors import (
    CollshimError,
    CommunicationError,
    DeadlineError,
    PeerError,
    again,
    is_of_handler,
    local_failure,
)
from collshim.layout import Parts, nbytes_of
from collshim.transports.compute import Outputs, Share, computation, shares
from collshim.transports.streams import StreamOrder
from collshim.transports.threads import carrier as carriers
from collshim.transports.threads.carrier import ThreadCarrier
from collshim.transports.threads.gpus import compute_on_gpus, followed
from collshim.transports.threads.members import Members
from collshim.transports.waiting import FIRST_SLICE, LATER_SLICE, Watched, chain_of, missing_text, watch
from collshim.work import DeferredErrors, Work


class Arrival(Work[Any], Watched):
    """One rank's part in an exchange: its inputs and outputs, and its work.

    Attributes:
        exchange, place: where it has arrived; no exchange any more once this rank has its outputs.
        stream: the CUDA stream that it was posted on; None on the CPU.
    """

    exchange: Exchange | None = None
    place: int
    stream: torch.Stream | None = None
    _limit: float | None = None

    def __init__(
        self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None, deferred: DeferredErrors
    ) -> None:
        self.rank = plan.rank
        self.plan = plan
        self.inputs = inputs
        self.outputs = outputs
        self.caller = caller
        if caller is not None and type(inputs) is Tensor and not inputs.is_inference():
            self.version = inputs._version
        self.deferred = deferred
        self._claim = True
        if not plan.on_cpu and plan.device.type == ACCELERATOR:
            self.stream = current_stream(plan.device)

    @property
    def call(self) -> Call:
        """The call, with the line it was made at."""
        call = self.plan.call
        return call if self.caller is None else call._replace(site=self.caller.site())

    def __str__(self) -> str:
        return str(self.call)

    def _is_over(self) -> bool:
        return self.exchange is None or self.exchange.finished

    def _own_failure(self) -> CollshimError:
        return again(None if self.exchange is None else self.exchange.failure)

    def _complete(self, timeout: float | None) -> Any:
        """This rank's outputs."""
        exchange = self.exchange
        if self.version is not None and self.inputs._version != self.version:
            tell_change(self)
        if exchange is None:
            return self.outputs
        if exchange.group.stalls.turns is not None:
            self._limit = timeout
            exchange.group.stalls.wait_in_turn(self, timeout)
        if not exchange.finished:
            self._limit = timeout
            exchange.group.stalls.waiting[exchange.group.ranks[self.rank]][self] = None
            over = partial(exchange.over, self.rank)
            try:
                watch(self, over, None if timeout is None else time.monotonic() + timeout)
            finally:
                self.clear()
        if self.deferred:
            self.deferred.discard(self)
        if exchange.failure is not None:
            raise self._own_failure()
        self.joint = exchange.joint
        if exchange.source is not None and self.place == 1:
            self.source = exchange.source
        self.outputs = exchange.outputs[self.place]
        if exchange.stream_order is not None:
            self.outputs = followed(exchange.stream_order, self.stream, self.outputs)
        self.exchange = None  # which holds the other ranks' outputs too
        return self.outputs

    def clear(self) -> None:
        """This rank waits no longer."""
        exchange = self.exchange
        if exchange is not None:
            group, rank = exchange.group, exchange.group.ranks[self.rank]
            group.stalls.gave_up[rank] = None if exchange.failure is None else self
            group.stalls.waiting[rank].pop(self, None)

    def look(self) -> None:
        """The whole group fails where a rank that computed for the others has left."""
        if self.exchange is not None:
            self.exchange.fail_if_abandoned()

    def whom(self) -> str:
        """See ``Watched``."""
        return "" if self.exchange is None else self.exchange.missing_text(self.exchange.missing())

    def expire(self) -> float | None:
        """The whole group fails, with the names of the missing ranks; where one computes, after a deadline more."""
        return None if self.exchange is None else self.exchange.expire(self._limit or 0.0)


class Exchange:
    """A collective in progress.

    Attributes:
        arrivals, inputs: those of the ranks, by place, until all is over.
        outputs: the results by place, once finished.
        source: the rank that a recv was served by; else None.
        began, computing: when all had come, and the ranks that compute for the others; told before they do, since such
            a rank may be ended before.
        finished: whether every rank has been served, or the exchange has failed.
        failure: what every rank is to raise; None.
        joint: whether some rank needs a gradient, once all have come.
        stream_order: the order between the ranks' CUDA streams; None where there are none.
    """

    source: int | None = None
    began = 0.0

    def __init__(self, group: Members, awaited: Sequence[int | None]) -> None:
        """``awaited`` are the ranks by place; None for any rank."""
        size = len(awaited)
        self.group = group
        self.arrivals: list[Any] = [None] * size
        self.inputs: list[Any] = [None] * size
        self.outputs: Outputs = [None] * size
        self.empty = size
        self.finished = False
        self.failure: CommunicationError | None = None
        self.joint = False
        self.stream_order: StreamOrder | None = None
        self._awaited = awaited
        self._lock = threading.Lock()
        self._gates: list[threading.Lock] = []
        self._shares: deque[Share] = deque()
        self.computing: list[int] = []
        self._sharing = 0

    def add(self, arrival: Arrival) -> Exchange:
        """A rank arrives at its place; the group's lock is held."""
        place, arrival.exchange = arrival.place, self
        self.arrivals[place], self.inputs[place], self.outputs[place] = arrival, arrival.inputs, arrival.outputs
        self.empty -= 1
        return self

    def missing(self) -> list[int]:
        """The ranks of the group that have not come."""
        return [rank for rank, arrival in self._places() if arrival is None and rank is not None]

    def candidates(self) -> list[int]:
        """The ranks of which one must come, where it does not matter which."""
        places = self._places()
        if not any(rank is None and arrival is None for rank, arrival in places):
            return []
        present = {arrival.rank for _, arrival in places if arrival is not None}
        return [rank for rank in range(self.group.size) if rank not in present]

    def _places(self) -> list[tuple[int | None, Any]]:
        """The ranks that are awaited, and their arrivals; none once all have arrived, or the exchange has failed."""
        arrivals = self.arrivals  # first: it may be over meanwhile
        return [] if self.empty == 0 or self.finished else list(zip(self._awaited, arrivals, strict=True))

    def run(self, rank: int) -> None:
        """All have come: ``rank`` compares their calls and computes, together with the ranks that wait."""
        plan: Plan = self.arrivals[0].plan
        try:
            carrier: ThreadCarrier = plan.carrier
            compute, is_known = carrier.compute, True
            for arrival in self.arrivals:
                if arrival.version is not None and arrival.outputs is not None:  # which may be the input
                    if arrival.inputs._version != arrival.version:
                        tell_change(arrival)
                    arrival.version = None
                is_known = is_known and (arrival.plan is plan or arrival.plan.signature == plan.signature)
            if compute is None or not is_known:
                self._run_compared(rank)
                return
            ranks, fresh, self.joint = carrier.ranks, carrier.fresh, plan.call.needs_grad
            if fresh is not None:
                for place in [place for place in ranks if self.outputs[place] is None]:
                    self.outputs[place] = fresh()
            if carrier.is_small:
                compute(self.inputs, self.outputs, ranks)
                self._finish()
                return
            self._share(shares(plan.call, compute, self.inputs, self.outputs, ranks), rank)
        except BaseException as error:
            if self._is_own(error, rank):
                raise
        finally:
            self.computing.remove(rank)

    def _run_compared(self, rank: int) -> None:
        """The calls are not known to be alike: look closer."""
        calls = [arrival.call for arrival in self.arrivals]
        self.joint = any(call.needs_grad for call in calls)
        if (failure := self._objection(calls)) is not None:
            self.fail(failure)
            return
        if any(arrival.stream is not None for arrival in self.arrivals):
            self.stream_order = StreamOrder([(each.stream, each.inputs, each.outputs) for each in self.arrivals])
        self._compute(calls, rank)

    def _objection(self, calls: Sequence[Call]) -> CommunicationError | None:
        return objection(calls, self.group.ranks)

    def _compute(self, calls: Sequence[Call], rank: int) -> None:
        call, giver = calls[0], self.arrivals[calls[0].root or 0]
        ranks = call.collective.getters(call.root, len(calls))
        for place in ranks:
            if self.outputs[place] is None:
                device = giver.plan.device if calls[place].device == "any" else self.arrivals[place].plan.device
                self.outputs[place] = allocator(calls, place, device)()
        compute = computation(call, next((call.dtype for call in calls if call.dtype is not None), None))
        if self.stream_order is not None:
            compute_on_gpus(self.stream_order, compute, call, self.inputs, self.outputs, ranks)
        elif max(sum(map(nbytes_of, self.inputs)), sum(map(nbytes_of, self.outputs))) > carriers.SHARED_BYTES:
            self._share(shares(call, compute, self.inputs, self.outputs, ranks), rank)
            return
        else:
            compute(self.inputs, self.outputs, ranks)
        self._finish()

    def _share(self, work: list[Share], rank: int) -> None:
        """The ranks that wait are woken to take shares too."""
        with self._lock:
            self._shares.extend(work)
            gates, self._gates = self._gates, []
        for gate in gates:
            gate.release()
        self._take_shares(rank)

    def _take_shares(self, rank: int) -> None:
        """``rank`` takes shares until none is left; the last one to end finishes the exchange."""
        with self._lock:
            self.computing.append(rank)
            self._sharing += 1
        try:
            while (share := self._next_share()) is not None:
                share()
        except BaseException as error:
            if self._is_own(error, rank):
                raise
        finally:
            with self._lock:
                self.computing.remove(rank)
                self._sharing -= 1
                over = self._sharing == 0 and not self._shares and not self.finished
        if over:
            self._finish()

    def _next_share(self) -> Share | None:
        with self._lock:
            return self._shares.popleft() if self._shares else None

    def over(self, rank: int, seconds: float) -> bool:
        """Whether all is over after at most that many seconds, with this rank's help where there is work."""
        gate = threading.Lock()
        gate.acquire()
        with self._lock:
            waits = not (self.finished or self._shares)
            if waits:
                self._gates.append(gate)
        if waits:
            gate.acquire(timeout=seconds)
        if self._shares and not self.finished:
            self._take_shares(rank)
        return self.finished

    def expire(self, timeout: float) -> float | None:
        """A rank's deadline, seconds after it began to wait, has passed; None, or until when it may wait on."""
        if self.finished:
            return None
        if self.empty == 0:
            return self._expire_computation(max(timeout, LATER_SLICE))
        missing = self.missing()
        text = self.missing_text(missing) if missing else self._silence_text()
        self.group.fail(DeadlineError(f"{text} (within {timeout:g} s)"))
        return None

    def _expire_computation(self, timeout: float) -> float | None:
        """All have come, and the ranks that compute for the others have not ended; they get as long again."""
        limit = self.began + timeout
        if time.monotonic() < limit or not self.computing:
            return max(limit, time.monotonic() + FIRST_SLICE)
        text = self._computing_text("has not ended its computation")
        self.fail(DeadlineError(f"{text} (within {timeout:g} s)"), ends=True)
        return None

    def fail_if_abandoned(self) -> None:
        """End the group where all have come, and the ranks that compute for the others have left."""
        stalls, computing = self.group.stalls, [self.group.ranks[rank] for rank in self.computing]
        if self.empty == 0 and computing and all(rank in stalls.left for rank in computing):
            places = map(stalls.whereabouts, computing)
            self.fail(PeerError(self._computing_text(f"computed for all, and {'; '.join(places)}")), ends=True)

    def _computing_text(self, what: str) -> str:
        ranks = ", ".join(f"rank {rank}" for rank in sorted({*self.computing}))
        return f"{_first_call(self._present())}: all came, and {ranks} {what}{in_the_world(self.group.ranks)}"

    def missing_text(self, missing: Sequence[int]) -> str:
        """The error text that names the missing ranks and where they are instead."""
        stalls, ranks, arrivals = self.group.stalls, self.group.ranks, self._present()
        absent = [(rank, self.group.whereabouts(rank)) for rank in missing]
        present = [(arrival.rank, str(arrival)) for arrival in arrivals]
        own = ranks[arrivals[0].rank] if arrivals else -1
        chain = chain_of([ranks[rank] for rank in missing], stalls.awaited, stalls.whereabouts, own, ranks)
        return missing_text(_first_call(arrivals), absent, present, ranks) + chain

    def _silence_text(self) -> str:
        """The error text of a receive from whichever rank sends first: where all of them are."""
        ranks = self.group.ranks
        details = "; ".join(f"rank {rank} {self.group.whereabouts(rank)}" for rank in self.candidates())
        return f"{_first_call(self._present())}: no rank sent anything: {details}{in_the_world(ranks)}"

    def _present(self) -> list[Arrival]:
        return [arrival for arrival in self.arrivals if arrival is not None]

    def fail(self, failure: CommunicationError, *, ends: bool = False) -> None:
        """Every rank that has come, or waits, gets ``failure``; where it ``ends`` the group, every later call too."""
        if ends:
            self.group.fail(failure)
        with self._lock:
            if self.finished:
                return
            self.failure = failure
            self.finished = True
        for arrival in self.arrivals:
            if arrival is not None:
                arrival.deferred.append(arrival)
        self._finish()

    def fail_with(self, error: BaseException, rank: int) -> None:
        """The computation has failed on ``rank``."""
        op = next((arrival.plan.call.op for arrival in self._present()), "a call that is over")
        self._shares.clear()
        self.fail(local_failure(op, error, f" (on rank {rank}, which computed for all)"))

    def _is_own(self, error: BaseException, rank: int) -> bool:
        """Fail with it; whether this rank is to raise it: a handler's, an exit, or one that came when all was over."""
        is_over = self.finished and self.failure is None
        self.fail_with(error, rank)
        return is_over or is_of_handler(error) or not isinstance(error, Exception)

    def _finish(self) -> None:
        """It is over: wake the ranks that wait, and drop the arrivals, which hold this exchange."""
        with self._lock:
            self.finished = True
            gates, self._gates = self._gates, []
        self.arrivals, self.inputs = [], []
        for gate in gates:
            gate.release()


def _first_call(arrivals: Sequence[Arrival]) -> str:
    """What was called; of a message also by which rank, since the other ranks of the group get the text too."""
    if not arrivals:
        return "a call that is over"
    first = arrivals[0]
    return f"{first} on rank {first.rank}" if first.plan.collective in MESSAGES else str(first)
