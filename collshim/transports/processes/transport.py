"""One process's end of a group: it compares calls if asked to, and moves their data through torch ProcessGroups."""

from __future__ import annotations

import atexit
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Literal

import torch

from collshim.accelerator import ACCELERATOR
from collshim.arrays import Arrays
from collshim.calls.call import Call
from collshim.calls.collective import BARRIER
from collshim.calls.plan import Plan
from collshim.calls.site import Caller, caller
from collshim.errors import ArgumentValueError, CollshimError
from collshim.layout import Parts
from collshim.settings import get as current_options
from collshim.transports.dropping import DROPPED
from collshim.transports.processes.backend import OF_GROUP, Transfer
from collshim.transports.processes.carrier import ProcessCarrier
from collshim.transports.processes.comparison import GlooComparison
from collshim.transports.processes.ending import GroupEnd
from collshim.transports.processes.exchange import Exchange
from collshim.transports.processes.fingerprint import (
    encode,
    fingerprint_bytes,
    header_bytes,
    inline_bytes,
    signing_key,
)
from collshim.transports.processes.in_line import set_in_line
from collshim.transports.processes.messages import Messages
from collshim.transports.processes.nccl import exchange as nccl_exchange
from collshim.transports.processes.nccl.group import nccl_is_there
from collshim.transports.processes.nccl.launches import Launches
from collshim.transports.processes.nccl.options import chosen, refuse_options, set_options
from collshim.transports.processes.process_groups import ProcessGroups, keys_of_making
from collshim.transports.processes.progress import LEFTOVERS, PROGRESS
from collshim.transports.processes.shared_exchange import SharedExchange
from collshim.transports.shared_memory.group import SharedMemory
from collshim.transports.shared_memory.late_threads import hold_late_threads
from collshim.transports.shared_memory.meeting import meet
from collshim.transports.waiting import FIRST_SLICE
from collshim.work import DeferredErrors, Work

atexit.register(hold_late_threads)  # at import, so that it runs after the process has left its world

_FEW = 32
"""The largest number of ranks that send their fingerprints directly to each other."""


class ProcessTransport(GroupEnd):
    """See ``Transport``.

    Without shared memory, fingerprints and data travel in two ProcessGroups; all ranks make the calls in each in the
    same order. With it, a ProcessGroup carries only the data that the memory cannot carry, if there can be any.

    Args:
        groups: makes this process's ProcessGroups.
        ranks: the group's ranks in the world, in the group's order.
        key: the group's name in the store, the same on all its ranks and used once.
        checks: whether the ranks compare their calls before data moves. None excludes calls on CUDA tensors; "sites"
            compares all calls and the lines that made them.

    Attributes:
        data_group: the ProcessGroup for data; None if shared memory carries all of it, or once the group has ended.
        gpu_port: its NCCL backend, from the first call on a GPU on.
        latest: the last work of gloo's for data. NCCL's works are not kept: its groups are ended differently, and a
            work that was captured into a graph must not be queried.
        least_spread: seconds between the first and the last rank's post, in the call where they were closest.
        sequence: the number of collectives posted; ``posting`` is held while one is numbered and sent.
        signing_key: the key that signs the group's fingerprints.
    """

    sequence = _fingerprints = 0
    least_spread = float("inf")
    latest: Any = None
    shared: SharedMemory | None = None
    _latest_fingerprints: Any = None
    _has_leftovers = False

    def __init__(
        self, groups: ProcessGroups, ranks: Sequence[int], key: str, *, checks: bool | Literal["sites"] | None
    ) -> None:
        self.groups = groups
        self.world = world = groups.world
        self.pending = world.pending
        self.stalls = world.stalls
        self.ranks = tuple(ranks)
        self.key = key
        self.rank = self.ranks.index(world.rank)
        self.size = len(self.ranks)
        self._has_nccl = nccl_is_there()
        self.checks = checks is not False
        self.checks_on_cuda, self.compares_sites = checks in (True, "sites"), checks == "sites"
        self._chosen: bool | Literal["sites"] | None = checks
        self.deferred = DeferredErrors()
        self.launches = Launches(self, world)
        self.agreeing, self._ending = threading.RLock(), threading.Lock()
        self._afterwards = []
        self.header_bytes = header_bytes(self.size)
        self.signing_key = signing_key(world.secret, key)
        self._made_at = self.last_post = self.last_step = time.monotonic()
        self._queue: deque[Exchange] = deque()
        self.posting = threading.Lock()  # makes numbering, queueing and sending a call atomic between threads
        self._failure = None
        self._meet()
        self._messages = Messages(self, world.connections)
        world.register(self)
        self._is_open = True
        DROPPED.start()

    def _meet(self) -> None:
        """Meet the other ranks, set up shared memory with them, and make the ProcessGroups that it does not replace."""
        world, key, ranks, choice = self.world, self.key, self.ranks, current_options().transport
        gather = self.groups.meeting(key, ranks)
        with world.blame_server(ranks), world.stalls.during_making(ranks, caller().site()):
            self.shared = meet(gather, choice, self.rank, self.size, world.secret, key, has_gpu=self._has_nccl)
            halves = self._connect()
        self.counts_writes = self.checks or self.shared is not None
        world.made(key, ranks, keys_of_making(ranks, halves))

    def _connect(self) -> list[str]:
        """Make the ProcessGroups that the group needs beside its shared memory; return their names.

        A rank that is alone has one for both.
        """
        halves = list[str]()
        if self.shared is None or not self.shared.carries_all:
            halves.append("data")
        if self.shared is None and self.size > 1:
            halves.append("fingerprints")
        made = [self.groups.make(f"{self.key}/{half}", self.ranks, cuda=half == "data") for half in halves]
        if made:
            self.data_group, self._fingerprint_group = made[0], made[-1]
            self._data_backend, self._fingerprint_backend = (
                group._get_backend(torch.device("cpu")) for group in (made[0], made[-1])
            )
        return halves

    def carrier(self, plan: Plan) -> ProcessCarrier:
        """See ``Transport.carrier``."""
        is_shared = self.shared is not None and plan.on_cpu
        return ProcessCarrier(plan, takes_joined=not (self.checks or is_shared))

    def start(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None) -> Work[Arrays]:
        """See ``Transport.start``."""
        transfer = plan.carrier.transfer
        if transfer is None or self._queue or self.checks or self.shared is not None:
            return self._start_in_turn(plan, inputs, outputs, caller)
        sequence = self.sequence
        self.sequence = sequence + 1
        try:
            outputs, work, finish = transfer(self.data_group, inputs, outputs)
        except Exception as error:
            exchange = Exchange(self, plan, sequence, outputs)
            exchange.fail_to_start(error)
            return exchange
        self.latest = work
        return Exchange(self, plan, sequence, outputs, work, finish)

    def set_in_line(self, plan: Plan) -> None:
        """See ``Group``."""
        if self.shared is not None and plan.on_cpu:
            set_in_line(self, self.shared, plan)

    def set_start(self, plan: Plan, in_line: Transfer | None) -> None:
        """See ``Group``."""
        plan.carrier.start = self.start if plan.on_cpu else partial(nccl_exchange.start, self)
        plan.carrier.in_line = None if in_line is None else nccl_exchange.in_line(self, plan, in_line)

    def connected_gpu_port(self) -> Any:
        """See ``Group``."""
        if self.gpu_port is None:
            self.gpu_port = self.data_group._get_backend(torch.device(ACCELERATOR))
        return self.gpu_port

    def set_nccl_options(self, options: object) -> None:
        """See ``Transport.set_nccl_options``."""
        self.refuse_if_broken()
        refuse_options(options)
        if chosen(options) == chosen(self.nccl_options):
            return
        if self.launches.are_used:
            expected = "passed before the group's first call on a GPU, or to a new group"
            text = f"NCCL's options were passed after it had connected the ranks, should be {expected}"
            raise ArgumentValueError(f"{text} (rank {self.rank} of {self.size})")
        self.nccl_options = options
        if self._has_nccl:
            set_options(self.connected_gpu_port(), options)

    def _start_in_turn(
        self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None
    ) -> Work[Arrays]:
        """Start a call that is compared, or that follows compared calls, so that all ranks keep one order."""
        if self._failure is not None:
            self.refuse_if_broken()
        is_compared = self.checks_on_cuda if plan.call.device == ACCELERATOR else self.checks
        if self.shared is not None and (plan.on_cpu or plan.collective is BARRIER):
            is_compared = True  # if the check is off, only the sizes: see ``Exchange``
        elif plan.collective is BARRIER and not is_compared:
            return self._start_barrier(plan)
        is_compared = is_compared or plan.call.discovers
        is_shared = is_compared and self.shared is not None
        with self.posting:
            exchange = (SharedExchange if is_shared else Exchange)(self, plan, self.sequence, outputs)
            exchange.set_inputs(inputs, caller)
            if is_compared:
                self._exchange_fingerprints(exchange)
            self.sequence += 1
            if exchange.fingerprints is None and (plan.call.device == ACCELERATOR or not self._queue):
                exchange.start()
                return exchange
            self._queue.append(exchange)
        if plan.collective is BARRIER or exchange.is_inline:
            if not self._has_leftovers:  # a waiting rank advances it; a thread does if none waits
                self._has_leftovers = True
                LEFTOVERS.watch(self)
            return exchange
        self._start_without_wait(exchange)
        return exchange

    def _start_barrier(self, plan: Plan) -> Exchange:
        """Start a barrier immediately in the group of the fingerprints, whose order is that of the posts on all ranks.

        If this rank is late, gloo can complete the barrier although the other ranks gave up; so this rank asks whether
        they did.
        """
        last, self.last_post = self.last_post, time.monotonic()
        exchange = Exchange(self, plan, self.sequence, None)
        self.sequence += 1
        try:
            exchange.work = self._latest_fingerprints = self._fingerprint_backend.barrier()
        except Exception as error:
            exchange.fail_to_start(error)
        if self.last_post - last > FIRST_SLICE:
            exchange.finish = exchange.raise_if_ended
        return exchange

    def _exchange_fingerprints(self, exchange: Exchange) -> None:
        plan = exchange.plan
        exchange.header = header = plan.carrier.header(plan.call, exchange.caller, self.header_bytes)
        last, self.last_post = self.last_post, time.monotonic()
        exchange.posted, exchange.may_be_late = self.last_post, self.last_post - last > FIRST_SLICE
        if self.shared is not None and isinstance(exchange, SharedExchange):
            exchange.post(self.shared, header)
            return
        number, self._fingerprints = self._fingerprints, self._fingerprints + 1
        posted = self.last_post - self._made_at
        data = inline_bytes(exchange.inputs)
        exchange.is_inline = data is not None and plan.carrier.is_even
        fingerprint = encode(header, data, self.size, self.signing_key, self.rank, number, posted)
        gathered = torch.empty((self.size, fingerprint_bytes(self.size)), dtype=torch.uint8, device="cpu")
        if self.size <= _FEW:  # gloo is then faster if each rank sends its own to every other
            own = fingerprint.expand_as(gathered).contiguous()
            work = OF_GROUP.all_to_all(self._fingerprint_group, gathered, own, [], [])
        else:
            work = OF_GROUP.all_gather(self._fingerprint_group, gathered.view(-1), fingerprint)
        self._latest_fingerprints = work
        exchange.fingerprints = GlooComparison(work, gathered, number, self.signing_key, self.rank)

    def _start_without_wait(self, exchange: Exchange) -> None:
        """Make sure that data which follows fingerprints starts even if this rank does not wait.

        NCCL needs the calls of all groups in one order on all ranks, so data on CUDA starts before the post returns,
        even on a rank that has no input and cannot know yet where the data is.
        """
        call = exchange.plan.call
        if call.device == "cpu" or call.content == "object" or not (call.device == ACCELERATOR or self._has_nccl):
            PROGRESS.watch(self)
            return
        try:
            self.agree_up_to(exchange, time.monotonic() + self.world.timeout)
        except CollshimError as failure:
            exchange.fail(failure)

    def agree_up_to(self, exchange: Exchange, limit: float | None) -> None:
        """Let all calls up to this one agree and start, in the order in which they were posted."""
        with self.agreeing:
            queue = self._queue
            while not exchange.started and queue:
                self._agree_first(queue, limit)
            if not exchange.started:  # posted while another thread ended the group
                self.refuse_if_broken()

    def queued(self) -> deque[Exchange]:
        """See ``Group``."""
        return self._queue

    def put_first(self, exchange: Exchange) -> None:
        """See ``Group``."""
        self._queue.appendleft(exchange)

    def _agree_first(self, queue: deque[Exchange], limit: float | None) -> None:
        head = queue[0]
        head.agree(limit)
        self.last_step = time.monotonic()
        if head.started and queue and queue[0] is head:
            queue.popleft()

    def advance(self) -> bool:
        """Start the calls whose fingerprints have arrived, without waiting; return whether others still lack theirs."""
        try:
            if self.agreeing.acquire(blocking=False):
                try:
                    queue = self._queue
                    while queue and queue[0].has_arrived() and self._failure is None:
                        self._agree_first(queue, None)
                finally:
                    self.agreeing.release()
        except CollshimError as failure:
            self.break_(failure)
            self._keep_untold(self._failure or failure)  # this error does not reach the program
        is_read = self.shared is not None and self.shared.is_read()
        return is_read or (self._failure is None and bool(self._queue))

    def advance_leftovers(self) -> bool:
        """See ``Group``."""
        self._has_leftovers = False  # before the step: calls posted meanwhile ask to be watched again
        has_more = self.advance()
        self._has_leftovers = self._has_leftovers or has_more
        return has_more

    def message(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None) -> Work[Arrays]:
        """See ``Transport.message``."""
        self.refuse_if_broken()
        return self._messages.start(plan, inputs, outputs, caller)

    def refuse_batch(self, calls: Sequence[Call]) -> None:
        """See ``Transport.refuse_batch``."""
        self._messages.refuse_batch(calls)

    def together(self) -> AbstractContextManager[None]:
        """See ``Transport.together``."""
        return self._messages.together()

    def split(self, ranks: Sequence[int], key: str) -> ProcessTransport | None:
        """See ``Transport.split``; its members wait for each other here."""
        self.refuse_if_broken()
        if self.rank not in ranks:
            return None
        members = [self.ranks[rank] for rank in ranks]
        self.world.begin_making()
        key = self.world.fresh(f"{self.key}/{key}")
        return ProcessTransport(self.groups, members, key, checks=self._chosen)

    def leave(self, why: str, *, stays: bool = False) -> None:
        """See ``Transport.leave``."""
        self.world.leave(why, stays=stays)

    def completed(self) -> int:
        """Return how many of the posted calls are complete, as far as their order shows."""
        first = self._queue[0].sequence if self._queue else self.sequence
        return first if self._is_idle() else min(first, self.sequence - 1)
