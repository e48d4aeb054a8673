"""One thread's end of a group: its calls take part in exchanges with the other threads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from torch import Tensor

from collshim.arrays import Arrays
from collshim.calls.call import EAGER_BYTES, Call
from collshim.calls.collective import RECV, SEND
from collshim.calls.pending import PendingCalls
from collshim.calls.plan import Plan
from collshim.calls.site import Caller
from collshim.errors import BrokenCommunicatorError, local_failure
from collshim.layout import Parts
from collshim.logs.files import rank_file, rank_log
from collshim.strangers import ASKING, refuse
from collshim.transports.threads.carrier import ThreadCarrier
from collshim.transports.threads.exchange import Arrival, Exchange
from collshim.transports.threads.group import ThreadGroup
from collshim.transports.threads.messages import MessageExchange
from collshim.work import CompletedWork, DeferredErrors, Work


class ThreadTransport:
    """See ``Transport``. Calls are always compared."""

    checks = checks_on_cuda = counts_writes = True
    made_at = ""
    nccl_options: Any = None

    def __init__(self, group: ThreadGroup, rank: int, pending: PendingCalls | None = None) -> None:
        """Make a rank's end; ``pending`` are the rank's pending calls if this group was split off one; else None."""
        self.group = group
        self.key = group.key
        if pending is None:
            pending = PendingCalls()
            pending.log = rank_log(rank_file(rank), group.world.run, rank, group.size)
        self.pending = pending
        self.rank = rank
        self.size = group.size
        self.ranks = group.ranks
        self.deferred = DeferredErrors()
        self._sequence = 0
        self._closed = False
        group.world.join(self)

    def carrier(self, plan: Plan) -> ThreadCarrier:
        """See ``Transport.carrier``."""
        return ThreadCarrier(plan)

    def start(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None) -> Work[Arrays]:
        """See ``Transport.start``."""
        if plan.carrier.runs_alone:
            return self._run_alone(plan, inputs, outputs, caller)
        group, arrival = self.group, Arrival(plan, inputs, outputs, caller, self.deferred)
        with group.lock:
            if self._closed or group.failure is not None or ASKING.world is not None:
                self._refuse()
            try:
                sequence = self._sequence
                self._sequence = sequence + 1
                exchange = group.exchanges.get(sequence)
                if exchange is None:
                    exchange = group.exchanges[sequence] = group.kind(group, group.members)
                index = arrival.index = self.rank
                arrival.exchange = exchange
                exchange.arrivals[index], exchange.inputs[index], exchange.outputs[index] = arrival, inputs, outputs
                exchange.empty = empty = exchange.empty - 1
                if empty == 0:
                    exchange.began = time.monotonic()
                    exchange.computing.append(index)
                    del group.exchanges[sequence]
            except BaseException as error:
                self._fail(plan.call, error)
                raise
        if empty == 0:
            exchange.run(self.rank)
        elif group.closed or group.stalls.left:
            group.fail_if_hopeless(exchange)
        return arrival

    def _run_alone(
        self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None
    ) -> Work[Arrays]:
        """Run a call of a single rank, which is complete as soon as it is started."""
        if self._closed or self.group.failure is not None:
            self._refuse()
        if outputs is inputs and plan.call.factor is None:
            return CompletedWork(outputs, plan.call)
        try:
            results = _compute_alone(plan, inputs, outputs)
        except Exception as error:
            arrival = Arrival(plan, inputs, outputs, caller, self.deferred)
            arrival.index = 0
            Exchange(self.group, self.group.members).add(arrival).fail_with(error, 0)
            return arrival
        return CompletedWork(results, plan.call)

    def message(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None) -> Work[Arrays]:
        """See ``Transport.message``."""
        group, call, deferred = self.group, plan.call, self.deferred
        is_eager = isinstance(inputs, Tensor) and inputs.nbytes <= EAGER_BYTES
        if is_eager and isinstance(inputs, Tensor):
            inputs, deferred = inputs.clone(), DeferredErrors()  # complete for its sender, even if delivery fails
        arrival = Arrival(plan, inputs, outputs, caller, deferred)
        arrival.index = 0 if call.collective is SEND else 1
        with group.lock:
            if self._closed or group.failure is not None or ASKING.world is not None:
                self._refuse()
            queues = group.queues[self.rank if call.collective is RECV or call.root is None else call.root]
            ranks = (self.rank, call.root) if call.collective is SEND else (call.root, self.rank)
            try:
                peer = queues.receive(arrival) if call.collective is RECV else queues.deliver(arrival)
                exchange = (peer and peer.exchange) or MessageExchange(group, ranks)
                exchange.add(arrival)
                if peer is not None:
                    exchange.began = time.monotonic()
                    exchange.computing.append(self.rank)
            except BaseException as error:
                self._fail(call, error)
                raise
        if peer is not None:
            exchange.run(self.rank)
        elif group.closed or group.stalls.left:
            group.fail_if_hopeless(exchange)
        return CompletedWork(None, call=call) if is_eager else arrival

    def refuse_batch(self, calls: Sequence[Call]) -> None:
        """See ``Transport.refuse_batch``; here every batch is allowed."""

    def together(self) -> AbstractContextManager[None]:
        """See ``Transport.together``; here no message waits for a different one anyway."""
        return nullcontext()

    def split(self, ranks: Sequence[int], key: str) -> ThreadTransport | None:
        """See ``Transport.split``."""
        if self._closed or ASKING.world is not None:
            self._refuse()
        if self.rank not in ranks:
            return None
        members = tuple(self.group.ranks[rank] for rank in ranks)
        group = self.group.world.group(members, f"{self.group.key}/{key}")
        return ThreadTransport(group, list(ranks).index(self.rank), self.pending)

    def leave(self, why: str, *, stays: bool = False) -> None:
        """See ``Transport.leave``."""
        self.group.world.leave(self.group.ranks[self.rank], why)

    def set_nccl_options(self, options: object) -> None:
        """See ``Transport.set_nccl_options``; here they have no effect."""
        self.nccl_options = options

    def settle(self) -> None:
        """See ``Transport.settle``; here no call fails after its wait."""

    def close(self) -> None:
        """See ``Transport.close``."""
        if not self._closed:
            self._closed = True
            self.group.world.open.discard(self)
            self.group.close(self.rank, self.pending)

    def drop(self) -> None:
        """See ``Transport.drop``; calls that this rank has started are completed by the others."""
        self.close()

    def _fail(self, call: Call, error: BaseException) -> None:
        """End the group because this thread was interrupted while posting: others might not see its call."""
        self.group.fail(local_failure(call.op, error, f" (on rank {self.rank}, as it posted the call)"))

    def _refuse(self) -> None:
        refuse()
        if self._closed:
            raise BrokenCommunicatorError("this communicator was destroyed, should be a live one")
        raise BrokenCommunicatorError(f"this communicator was ended by an earlier failure: {self.group.failure}")


def _compute_alone(plan: Plan, inputs: Parts | None, outputs: Arrays | None) -> Parts | None:
    """Return the results of a single rank: its input, in different memory and possibly with a different shape."""
    if type(inputs) is not Tensor or type(outputs) is list or plan.call.factor is not None or not plan.gets:
        results = [outputs]
        plan.carrier.compute([inputs], results, plan.carrier.ranks)
        return results[0]
    whole = inputs if plan.collective.gives == plan.collective.gets else inputs.view(plan.shape or ())
    return whole.clone() if outputs is None else outputs.copy_(whole)
