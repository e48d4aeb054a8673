"""One call of a group of threads: ranks arrive, the last one computes, and all leave when it is done.

A call completes even if no rank waits for it. Waiting ranks take a share of large computations.
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
from collshim.transports.threads.gpus import compute_on_gpus, follow_work
from collshim.transports.threads.members import Members
from collshim.transports.waiting import FIRST_SLICE, LATER_SLICE, Watched, chain_of, missing_text, watch
from collshim.work import DeferredErrors, Work


class Arrival(Work[Any], Watched):
    """One rank's arrival at an exchange: its inputs and outputs, and its work.

    Attributes:
        exchange, index: the exchange, or None once this rank has its outputs; the rank's index in the exchange.
        stream: the CUDA stream on which the call was posted; None on the CPU.
    """

    exchange: Exchange | None = None
    index: int
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
        """The call, with the line that made it."""
        call = self.plan.call
        return call if self.caller is None else call._replace(site=self.caller.site())

    def __str__(self) -> str:
        return str(self.call)

    def _is_over(self) -> bool:
        return self.exchange is None or self.exchange.finished

    def _own_failure(self) -> CollshimError:
        return again(None if self.exchange is None else self.exchange.failure)

    def _complete(self, timeout: float | None) -> Any:
        """Return this rank's outputs."""
        exchange = self.exchange
        # The version is read last: the rank that computes sets it to None before it writes.
        if self.version is not None and (self.inputs._version != self.version is not None):
            tell_change(self)
        if exchange is None:
            return self.outputs
        stalls, self._limit = exchange.group.stalls, timeout
        if stalls.turns is not None or stalls.clock is not None:
            stalls.wait_in_turn(self, timeout)
        if not exchange.finished:
            stalls.waiting[exchange.group.ranks[self.rank]][self] = None
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
        if exchange.source is not None and self.index == 1:
            self.source = exchange.source
        self.outputs = exchange.outputs[self.index]
        if exchange.stream_order is not None:
            self.outputs = follow_work(exchange.stream_order, self.stream, self.outputs)
        self.exchange = None  # it also holds the other ranks' outputs
        return self.outputs

    def clear(self) -> None:
        """Note that this rank no longer waits."""
        exchange = self.exchange
        if exchange is not None:
            group, rank = exchange.group, exchange.group.ranks[self.rank]
            group.stalls.gave_up[rank] = None if exchange.failure is None else self
            group.stalls.waiting[rank].pop(self, None)

    def check(self) -> None:
        """Fail the whole group if a rank that computed for the others has left."""
        if self.exchange is not None:
            self.exchange.fail_if_abandoned()

    def describe(self) -> str:
        """See ``Watched``."""
        return "" if self.exchange is None else self.exchange.missing_text(self.exchange.missing())

    def expire(self) -> float | None:
        """Fail the whole group, naming the missing ranks; if a rank is computing, only after a second deadline."""
        return None if self.exchange is None else self.exchange.expire(self._limit or 0.0)


class Exchange:
    """A collective in progress.

    Attributes:
        arrivals, inputs: the ranks' arrivals and inputs, by index, until the exchange is over.
        outputs: the results by index, once finished.
        source: the rank whose message a recv received; None for other calls.
        began, computing: when all ranks had arrived, and the ranks that compute for the others. They are set before
            these ranks start, since a rank can be interrupted before it starts.
        finished: whether every rank has its result, or the exchange has failed.
        failure: the error that every rank must raise; None if there is none.
        joint: whether any rank needs a gradient, once all have arrived.
        stream_order: the order between the ranks' CUDA streams; None if there are none.
    """

    source: int | None = None
    began = 0.0

    def __init__(self, group: Members, awaited: Sequence[int | None]) -> None:
        """Make an exchange; ``awaited`` has the ranks by index, and None for any rank."""
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
        """Add a rank's arrival at its index; the caller holds the group's lock."""
        index, arrival.exchange = arrival.index, self
        self.arrivals[index], self.inputs[index], self.outputs[index] = arrival, arrival.inputs, arrival.outputs
        self.empty -= 1
        return self

    def missing(self) -> list[int]:
        """Return the ranks of the group that have not arrived."""
        return [rank for rank, arrival in self._slots() if arrival is None and rank is not None]

    def candidates(self) -> list[int]:
        """Return the ranks any one of which must still arrive."""
        slots = self._slots()
        if not any(rank is None and arrival is None for rank, arrival in slots):
            return []
        present = {arrival.rank for _, arrival in slots if arrival is not None}
        return [rank for rank in range(self.group.size) if rank not in present]

    def _slots(self) -> list[tuple[int | None, Any]]:
        """Return the expected ranks and their arrivals; none once all have arrived, or the exchange has failed."""
        arrivals = self.arrivals  # read first, because the exchange can finish meanwhile
        return [] if self.empty == 0 or self.finished else list(zip(self._awaited, arrivals, strict=True))

    def run(self, rank: int) -> None:
        """Compare the calls and compute on ``rank``, together with the waiting ranks; all ranks have arrived."""
        plan: Plan = self.arrivals[0].plan
        try:
            carrier: ThreadCarrier = plan.carrier
            compute, is_known = carrier.compute, True
            for arrival in self.arrivals:
                if arrival.version is not None and arrival.outputs is not None:  # the output might be the input
                    if arrival.inputs._version != arrival.version:
                        tell_change(arrival)
                    arrival.version = None
                is_known = is_known and (arrival.plan is plan or arrival.plan.signature == plan.signature)
            if compute is None or not is_known:
                self._run_compared(rank)
                return
            ranks, fresh, self.joint = carrier.ranks, carrier.fresh, plan.call.needs_grad
            if fresh is not None:
                for index in [index for index in ranks if self.outputs[index] is None]:
                    self.outputs[index] = fresh()
            if carrier.is_small:
                compute(self.inputs, self.outputs, ranks)
                self._finish()
                return
            self._share(shares(plan.call, compute, self.inputs, self.outputs, ranks), rank)
        except BaseException as error:
            if self._fail_computation(error, rank):
                raise
        finally:
            self.computing.remove(rank)

    def _run_compared(self, rank: int) -> None:
        """Compare the calls field by field, since they are not known to agree, and compute."""
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
        for index in ranks:
            if self.outputs[index] is None:
                device = giver.plan.device if calls[index].device == "any" else self.arrivals[index].plan.device
                self.outputs[index] = allocator(calls, index, device)()
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
        """Take shares together with the waiting ranks, and wake them for that."""
        with self._lock:
            self._shares.extend(work)
            gates, self._gates = self._gates, []
        for gate in gates:
            gate.release()
        self._take_shares(rank)

    def _take_shares(self, rank: int) -> None:
        """Take shares on ``rank`` until none is left; the last rank to end finishes the exchange."""
        with self._lock:
            self.computing.append(rank)
            self._sharing += 1
        try:
            while (share := self._next_share()) is not None:
                share()
        except BaseException as error:
            if self._fail_computation(error, rank):
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
        """Wait at most that many seconds, taking shares of the work if there are any; return whether it is over."""
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
        """Handle a deadline ``timeout`` seconds after a rank began to wait; return a new deadline, or None."""
        if self.finished:
            return None
        if self.empty == 0:
            return self._expire_computation(max(timeout, LATER_SLICE))
        missing = self.missing()
        text = self.missing_text(missing) if missing else self._silence_text()
        self.group.fail(DeadlineError(f"{text} (within {timeout:g} s)"))
        return None

    def _expire_computation(self, timeout: float) -> float | None:
        """Fail if the ranks that compute for the others exceed a second deadline, counted from the last arrival."""
        limit = self.began + timeout
        if time.monotonic() < limit or not self.computing:
            return max(limit, time.monotonic() + FIRST_SLICE)
        text = self._computing_text(" has not finished its computation")
        self.fail(DeadlineError(f"{text} (within {timeout:g} s)"), ends=True)
        return None

    def fail_if_abandoned(self) -> None:
        """End the group if all have arrived and the ranks that compute for the others have left."""
        stalls, computing = self.group.stalls, [self.group.ranks[rank] for rank in self.computing]
        if self.empty == 0 and computing and all(rank in stalls.left for rank in computing):
            where = map(stalls.whereabouts, computing)
            self.fail(PeerError(self._computing_text(f", which computed for all, {'; '.join(where)}")), ends=True)

    def _computing_text(self, what: str) -> str:
        ranks = ", ".join(f"rank {rank}" for rank in sorted({*self.computing}))
        return f"{_first_call(self._present())}: all arrived, but {ranks}{what}{in_the_world(self.group.ranks)}"

    def missing_text(self, missing: Sequence[int]) -> str:
        """Return the error text that names the missing ranks and says where they are instead."""
        stalls, ranks, arrivals = self.group.stalls, self.group.ranks, self._present()
        absent = [(rank, self.group.whereabouts(rank)) for rank in missing]
        present = [(arrival.rank, str(arrival)) for arrival in arrivals]
        own = ranks[arrivals[0].rank] if arrivals else -1
        chain = chain_of([ranks[rank] for rank in missing], stalls.awaited, stalls.whereabouts, own, ranks)
        return missing_text(_first_call(arrivals), absent, present, ranks) + chain

    def _silence_text(self) -> str:
        """Return the error text of a receive from any rank; it says where all ranks are."""
        ranks = self.group.ranks
        details = "; ".join(f"rank {rank} {self.group.whereabouts(rank)}" for rank in self.candidates())
        return f"{_first_call(self._present())}: no rank sent anything: {details}{in_the_world(ranks)}"

    def _present(self) -> list[Arrival]:
        return [arrival for arrival in self.arrivals if arrival is not None]

    def fail(self, failure: CommunicationError, *, ends: bool = False) -> None:
        """Fail every rank that has arrived or is waiting; if ``ends``, end the group, so later calls fail too."""
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
        """Fail the exchange because the computation raised ``error`` on ``rank``."""
        op = next((arrival.plan.call.op for arrival in self._present()), "a call that is over")
        self._shares.clear()
        self.fail(local_failure(op, error, f" (on rank {rank}, which computed for all)"))

    def _fail_computation(self, error: BaseException, rank: int) -> bool:
        """Fail the exchange; return whether this rank must re-raise: in a handler, SystemExit, or after completion."""
        is_over = self.finished and self.failure is None
        self.fail_with(error, rank)
        return is_over or is_of_handler(error) or not isinstance(error, Exception)

    def _finish(self) -> None:
        """Finish: wake the waiting ranks, and drop the arrivals, which refer to this exchange."""
        with self._lock:
            self.finished = True
            gates, self._gates = self._gates, []
        self.arrivals, self.inputs = [], []
        for gate in gates:
            gate.release()


def _first_call(arrivals: Sequence[Arrival]) -> str:
    """Describe the call; for a message, also name its rank, since the group's other ranks raise the text too."""
    if not arrivals:
        return "a call that is over"
    first = arrivals[0]
    return f"{first} on rank {first.rank}" if first.plan.collective in MESSAGES else str(first)
