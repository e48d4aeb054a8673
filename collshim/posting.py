"""How every call starts: repeated or validated, planned, started by the transport, and returned as a ``Work``."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import profiler

from collshim.arrays import Array, Arrays, FromTorch, to_numpy, unsupported
from collshim.calls import validation
from collshim.calls.aliasing import without_overlap
from collshim.calls.call import Call
from collshim.calls.collective import MESSAGES, SEND, Collective, Shape
from collshim.calls.plan import KEPT, RAGGED, InLine, Plan, is_plain, recurs
from collshim.calls.recognizer import Recognizer
from collshim.calls.repeats import Repeats
from collshim.calls.site import Caller, caller
from collshim.calls.validation import Target
from collshim.errors import ArgumentValueError
from collshim.layout import Parts, are_equal, needs_grad, shapes_of
from collshim.log import LOG, show_as_asked
from collshim.observers import Observer, Observers
from collshim.settings import block_options
from collshim.settings import get as current_options
from collshim.transports import Transport, compares
from collshim.work import Delivery, Work, followed


class Posting:
    """The part of a communicator that posts calls; see ``Communicator`` for the attributes."""

    def __init__(self, transport: Transport, ranks: Sequence[int], name: str, timeout: float | None = None) -> None:
        self._transport = transport
        self._deferred = transport.deferred
        self._plans: dict[Any, Recognizer] = {}
        self._latest: dict[Any, Recognizer] = {}
        self.repeats: Repeats = {}
        self._seen: set[Any] = set()
        self._keeping = threading.Lock()  # if two threads keep a plan, only one drops the oldest
        self._to_numpy: Any = to_numpy if transport.checks else Tensor.numpy  # compared calls can return a graph
        self.rank = transport.rank
        self.size = transport.size
        self.checks = transport.checks
        self.checks_on_cuda = transport.checks_on_cuda
        self.counts_writes = transport.counts_writes
        self._pending = transport.pending
        self.ranks = tuple(ranks)
        self.name = name
        self._exchanges_sites = transport.checks and transport.size > 1
        show_as_asked()
        self._observers = Observers(transport, ranks, name)
        self.timeout = current_options().timeout if timeout is None else timeout
        self._log("made, of ranks %s of the world; calls are %scompared", self.ranks, "" if self.checks else "not ")

    @property
    def timeout(self) -> float:
        """How many seconds a wait may take by default."""
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: float) -> None:
        self.repeats.clear()
        self._timeout, pending = seconds, self._pending if self._exchanges_sites else None
        self._as_tensors, self._as_numpy = Delivery(seconds, None, pending), Delivery(seconds, self._to_numpy, pending)

    def observe(self, observer: Observer) -> None:
        """Let an ``Observer`` of ``collshim.observers`` see every call that is posted from now on."""
        self._observers.add(observer)

    def _log(self, text: str, *values: object) -> None:
        LOG.info(f"rank %d of %d in %s: {text}", self.rank, self.size, self.name, *values)

    def _join(self, work: Work[Arrays], result: Arrays, parts: Parts | None = None) -> Arrays:
        """Return the result as a part of the graph, since some rank needs a gradient; ``parts`` is the input."""
        raise NotImplementedError

    def _kind(self, plan: Plan, array: Arrays) -> FromTorch | None:
        """Return the function that converts a result to the caller's kind of array; None if it stays a tensor."""
        first = array[0] if type(array) is list else array
        if type(first) is np.ndarray:
            return self._to_numpy  # type: ignore[no-any-return]
        if type(first) is Tensor or plan.collective is SEND:
            return None
        return validation.kind_of(self, plan.call.op, first)

    def _post(
        self,
        call: Call,
        parts: Parts | None,
        target: Target | None,
        array: Arrays,
        out: Arrays,
        device: torch.device | None = None,
        key: Hashable = None,
        shape: Shape | None = None,
    ) -> Work[Arrays]:
        """Post a validated call; the work's result is ``out`` if there is one, else of the kind of ``array``."""
        if out is not None and call.needs_grad:
            call = call._replace(needs_grad=False)
        gets_array = array is not None and out is None and call.collective is not SEND
        kind = validation.kind_of(self, call.op, array) if gets_array else None
        inputs = None if parts is None else validation.readable_parts(parts)
        is_in_place = target is not None and target.written is inputs and call.collective.gives == call.collective.gets
        if target is not None and inputs is not None and not (is_in_place and call.collective.gets == "tensor"):
            inputs = without_overlap(call.collective, self.rank, inputs, target.written)
        plan = self._plan(call, parts, device or _device(parts), array, key, shape)
        work = self._start(plan, inputs, None if target is None else target.written, out, kind, parts)
        if call.needs_grad and call.collective is SEND:
            self._join(work, None, parts)  # its backward runs in the order of posting, whenever it is waited for
        if target is not None and target.own is not target.written and not target.is_direct:
            work = work.then(target.settle)
            if isinstance(target.own, Tensor) and target.refuse is None and len(self._seen) < KEPT:
                self._seen.add(strides_of(target.own))
        owner = array if out is None else out
        return work if type(owner) is Tensor else followed(work, owner)

    def _plan(
        self,
        call: Call,
        parts: Parts | None,
        device: torch.device,
        array: Arrays = None,
        key: Hashable = None,
        shape: Shape | None = None,
    ) -> Plan:
        """Return the plan of calls like this one; it is kept if its arrays alone identify the next such call."""
        if key is None and recurs(call):
            key = self._key(call, parts, array)
            key = key if device.type == "cpu" else (*key, device)
        elif key is None or not is_plain(call):
            return self._new_plan(call, device)
        known = self._plans.get(key)
        if known is None:
            plan = self._new_plan(call, device)
            if shape is not None and not plan.carrier.takes_joined:
                return plan
            known = Recognizer(plan, shape=shape, takes_joined=plan.carrier.takes_joined)
            with self._keeping:
                while len(self._plans) >= KEPT:
                    del self._plans[next(iter(self._plans))]
                    self._latest.clear()
                self._plans[key] = known
        return known.plan

    def _new_plan(self, call: Call, device: torch.device) -> Plan:
        plan = Plan(call, device, self.rank, self.size)
        plan.carrier = self._transport.carrier(plan)
        return plan

    def _key(self, call: Call, parts: Parts | None, array: Arrays) -> tuple[Hashable, ...]:
        """Return the key by which ``repeat`` finds the plan."""
        shape = torch.Size(call.sends[0] if call.sends else call.shape or ())
        if isinstance(parts, Tensor) and call.collective.gives == "parts":
            own = getattr(array, "shape", None)  # CuPy's is a tuple
            shape = torch.Size(own) if isinstance(own, tuple) else parts.shape
        op: Any = call.tag if call.collective in MESSAGES else RAGGED if call.discovers else call.reduce_op
        key = (call.collective, op, call.root, call.dtype, shape)
        return (*key, len(parts)) if isinstance(parts, list) else key

    def _start(
        self,
        plan: Plan,
        inputs: Parts | None,
        outputs: Parts | None,
        out: Arrays,
        kind: FromTorch | None,
        parts: Parts | None,
        waits: bool = False,
        is_seen: bool = False,
    ) -> Work[Arrays]:
        """Start a planned call; its result is ``out``, or else made by ``kind``. ``is_seen``: observers know of it."""
        block, known = block_options(), self._observers
        searches = block is not None and block.find_nan
        if not is_seen and (known.by_default or searches or profiler._is_profiler_enabled):
            seen = partial(self._start, out=out, kind=kind, parts=parts, is_seen=True)
            return known.start(seen, plan, inputs, outputs, self._transport.key, block, waits)
        in_line: InLine | None = plan.carrier.in_line if waits else None
        if in_line is not None and not (self._deferred or (out is None and plan.gets)):
            return in_line(plan, inputs, outputs, caller(3) if self._exchanges_sites else None, self._timeout)
        site = None
        if self._exchanges_sites:
            site = caller(3)  # these frames are collshim's
            self._pending.before(plan, inputs, outputs, site)
        self._pending.last = plan.call, site
        earlier = (self._deferred, self._deferred.copy()) if self._deferred else None
        start = plan.carrier.start or (self._transport.message if plan.is_message else self._transport.start)
        work = start(plan, inputs, outputs, site)
        if earlier is None and (kind is None or kind is self._to_numpy):
            work.delivery = self._as_tensors if kind is None else self._as_numpy
        else:
            work.delivery = Delivery(self._timeout, kind, self._as_tensors.pending, earlier)
        if out is not None:
            work.out = out
        elif plan.collective is not SEND and not work.was_over:  # these can be kept for long
            work.join = self._join if parts is None else partial(self._join, parts=parts)
        if site is not None:
            self._pending.after(work, plan, site, self._transport.key)
        return work

    def deliver(self, work: Work[Arrays], plan: Plan, site: Caller | None, out: Arrays) -> None:
        """Let the work of a posted call, which a rank's other calls do not overlap, deliver ``out`` to its caller."""
        work.delivery = self._as_tensors
        if out is not None:
            work.out = out
        elif work.joint or not work.was_over:
            work.join = self._join
        if site is not None:
            self._pending.after(work, plan, site, self._transport.key)

    def _call(
        self,
        collective: Collective,
        tensor: Tensor,
        reduce_op: str | None = None,
        factor: float | None = None,
        **more: Any,
    ) -> Call:
        """Make the call of a rank whose input is one tensor."""
        more.setdefault("needs_grad", tensor.requires_grad and torch.is_grad_enabled())
        return Call(collective, tuple(tensor.shape), tensor.dtype, tensor.device.type, reduce_op, factor, **more)

    def _parted_call(
        self,
        collective: Collective,
        parts: Parts,
        reduce_op: str | None = None,
        factor: float | None = None,
        **more: Any,
    ) -> Call:
        """Make the call of a rank whose input has one part per rank."""
        sends = None if isinstance(parts, Tensor) or are_equal(parts) else shapes_of(parts)
        call = self._call(collective, parts[0], reduce_op, factor, sends=sends, needs_grad=needs_grad(parts), **more)
        return call if sends is None else call._replace(shape=None)

    def _tensor(self, op: str, array: Array) -> Tensor:
        """Return an input as a tensor; refuse one without dense memory."""
        if type(array) is Tensor and unsupported(array) is None:
            return array
        tensor = validation.tensor_of(self, op, array)
        validation.refuse_kind(self, op, tensor)
        return tensor

    def _require_discovery(self, op: str, discovers: bool, own: Tensor | None = None) -> None:
        """Refuse a shape that the other ranks do not know, unless the ranks exchange it; ``own`` is the input."""
        if not (discovers or (self.checks if own is None else compares(self._transport, own))):
            got, expected = "unknown to the other ranks", "known, or the check on, or discovers=True on every rank"
            raise ArgumentValueError(validation.error_text(self, op, "shape of the awaited data", got, expected))


def _device(parts: Parts | None) -> torch.device:
    return torch.device("cpu") if parts is None else parts.device if isinstance(parts, Tensor) else parts[0].device


def strides_of(tensor: Tensor) -> tuple[Hashable, Hashable]:
    """Return the properties that decide whether a tensor's elements share memory."""
    return tensor.shape, tensor.stride()
