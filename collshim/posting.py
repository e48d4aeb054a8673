"""How every call starts: recalled or validated, planned, started by the transport, and returned as a ``Work``."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from collshim.accelerator import ACCELERATOR
from collshim.arrays import stream_follower, to_numpy
from collshim.arrays.nan import nan_in
from collshim.calls import validation
from collshim.calls.aliasing import without_overlap
from collshim.calls.call import Call
from collshim.calls.collective import MESSAGES, SEND, Collective, Shape
from collshim.calls.plan import KEPT, RAGGED, Carrier, InLine, Plan, is_plain, recurs
from collshim.calls.recognizer import Recognizer, dense
from collshim.calls.site import caller
from collshim.calls.validation import Target
from collshim.errors import ArgumentValueError
from collshim.layout import Parts
from collshim.log import LOG, show_as_asked
from collshim.settings import block_options
from collshim.settings import get as current_options
from collshim.transports import Transport
from collshim.work import DeferredErrors, Work


class Posting:
    """What a communicator's methods post calls with; see ``Communicator`` for the attributes."""

    def __init__(self, transport: Transport, ranks: Sequence[int], name: str, timeout: float | None = None) -> None:
        self._transport = transport
        self._deferred = transport.deferred
        self._finds_nan = current_options().find_nan
        self._plans: dict[Any, Recognizer] = {}
        self._latest: dict[Any, Recognizer] = {}
        self._seen: set[Any] = set()
        self._keeping = threading.Lock()  # of two threads that keep a plan one drops the oldest
        self._to_numpy: Any = to_numpy if transport.checks else Tensor.numpy  # what is checked may come with a graph
        self.rank = transport.rank
        self.size = transport.size
        self.checks = transport.checks
        self.checks_on_cuda = transport.checks_on_cuda
        self._tells_site = transport.checks and transport.size > 1
        self._pending = transport.pending
        self.ranks = tuple(ranks)
        self.name = name
        self.timeout = current_options().timeout if timeout is None else timeout
        show_as_asked()
        self._logs_calls = LOG.isEnabledFor(logging.DEBUG)
        self._log("made, of ranks %s of the world; calls are %scompared", self.ranks, "" if self.checks else "not ")

    def _log(self, text: str, *values: object, level: int = logging.INFO) -> None:
        LOG.log(level, f"rank %d of %d in %s: {text}", self.rank, self.size, self.name, *values)

    def _join(self, work: Work[Any], result: Any, parts: Parts | None = None) -> Any:
        """The result of a call, a part of the graph because some rank needs a gradient; ``parts`` is what was given."""
        raise NotImplementedError

    def repeat(
        self, collective: Collective, array: Any, out: Any, op: Any = None, root: Any = None, *, waits: bool = False
    ) -> Work[Any] | None:
        """Post a call like one that was validated before; None, and nothing posted, where more has to be looked at.

        Args:
            collective: the record; ``array``, ``out`` and ``root`` are those of the method of its name.
            op: the reduce operation; or the splits of an all_to_all; or the tag of a message.
            root: or the other rank of a message.
            waits: whether the caller waits at once, on this thread's stream. The work is ``COMPLETE`` then where NCCL
                takes its place in that stream.
        """
        if root is not None and type(root) is not int:
            return None
        if type(array) is Tensor and (out is None or type(out) is Tensor):
            try:
                known = self._latest.get((collective, op, root))
                if known is None or not known.recalls(array, out):
                    known = self._like_earlier(collective, array, out, op, root)
            except (TypeError, RuntimeError):  # of an op that cannot be hashed; of a tensor without a shape
                return None
            if known is not None:
                plan = known.plan
                if collective.reduces:
                    block = block_options()
                    if self._finds_nan if block is None else block.find_nan:
                        return None
                outputs: Any = out
                if not known.takes_joined and out is not None and out.shape == known.joined:
                    outputs = outputs.view(known.shape)
                return self._start(plan, array if plan.gives else None, outputs, out, None, None, waits)
        return self._repeat_by_look(collective, array, out, op, root, waits)

    def recall(self, collective: Collective, array: Any, out: Any, op: Any, root: Any, waits: bool) -> Work[Any] | None:
        """``repeat`` of a call between processes that nobody compares, of one tensor and a place; None for others."""
        if type(array) is not Tensor or type(out) is not Tensor or self._deferred or self._logs_calls:
            return None
        try:
            known = self._latest.get((collective, op, root))
            if known is None or not known.recalls(array, out):
                known = self._like_earlier(collective, array, out, op, root)
        except (TypeError, RuntimeError):  # as in ``repeat``
            return None
        if known is None or (collective.reduces and looks_for_nan(self._finds_nan)):
            return None
        plan = known.plan
        carrier: Carrier = plan.carrier
        if carrier.start is None:
            return None
        inputs = array if plan.gives else None
        if waits and carrier.in_line is not None:
            return carrier.in_line(inputs, out, caller() if self._tells_site else None, self.timeout)
        return self._start(plan, inputs, out, out, None, None)

    def _forget_plans(self) -> None:
        self._plans.clear()
        self._latest.clear()

    def _like_earlier(self, collective: Collective, array: Tensor, out: Any, op: Any, root: Any) -> Recognizer | None:
        """The recognizer of such a call, if these tensors are like an earlier one's; the next call will be like it."""
        key: Any = (collective, op, root, array.dtype, array.shape)
        known = self._plans.get(key if array.is_cpu else (*key, array.device))
        if known is None or not known.recalls(array, out):
            return None
        self._latest[collective, op, root] = known
        return known

    def _repeat_by_look(
        self, collective: Collective, array: Any, out: Any, op: Any, root: Any, waits: bool
    ) -> Work[Any] | None:
        """``repeat`` of a call whose arrays are looked at one by one."""
        tensor = dense(array)
        if tensor is None:
            return self._repeat_strided(collective, array, out, op, root) if type(array) is Tensor else None
        known = self._known(collective, tensor, op, root)
        if known is None or (collective.reduces and looks_for_nan(self._finds_nan)):
            return None
        plan = known.plan
        if plan.gives_parts and (tensor := known.parts(tensor, out)) is None:
            return None
        inputs, outputs = tensor if plan.gives else None, None
        if out is array and known.in_place:
            outputs = tensor
        elif out is None or not plan.gets:
            kind = None if type(array) is Tensor else self._kind(array)
            if known.needs_out:
                return None
            if kind is not None or out is not None:
                return self._start(plan, inputs, None, None, kind, None, waits)
        elif (places := known.places(tensor, out)) is not None:
            inputs, outputs = places
        else:
            return None
        if type(array) is Tensor and type(out) is not list:
            known.remember(array, out, inputs)
        return self._start(plan, inputs, outputs, out, None, None, waits)

    def _known(self, collective: Collective, tensor: Any, op: Any, root: Any) -> Recognizer | None:
        """The recognizer of calls of such a tensor, or list of tensors."""
        first = tensor if type(tensor) is Tensor else tensor[0]
        key: tuple[Any, ...] = (collective, op, root, first.dtype, first.shape)
        key = key if first is tensor else (*key, len(tensor))
        try:
            return self._plans.get(key if first.is_cpu else (*key, first.device))
        except TypeError:  # of an op that cannot be hashed
            return None

    def _repeat_strided(self, collective: Collective, array: Tensor, out: Any, op: Any, root: Any) -> Work[Any] | None:
        """``repeat`` of a tensor that is not contiguous, by a copy; into itself where its strides were validated."""
        if not array.is_cpu or array.layout is not torch.strided or array.is_nested or array.is_contiguous():
            return None
        is_own = out is array
        if array.requires_grad or array.is_neg() or array.is_inference():
            return None
        if is_own and _strides(array) not in self._seen:
            return None
        copy = array.contiguous()
        work = self.repeat(collective, copy, copy if is_own else out, op, root)
        if work is None or work._out is not copy:
            return work
        work._out = array
        return work.then(partial(_written_back, copy))

    def _kind(self, array: Any) -> Any:
        """What makes an array of the caller's kind of a result's tensors; None where they are it."""
        return None if type(array[0] if type(array) is list else array) is Tensor else self._to_numpy

    def _post(
        self,
        call: Call,
        parts: Parts | None,
        target: Target | None,
        array: Any,
        out: Any,
        device: torch.device | None = None,
        key: Any = None,
        shape: Shape | None = None,
    ) -> Work[Any]:
        """Post a validated call; the work's result is ``out`` where the caller gave one, else of ``array``'s kind."""
        if out is not None and call.needs_grad:
            call = call._replace(needs_grad=False)
        gets_array = array is not None and out is None and call.collective is not SEND
        kind = validation.kind_of(self, call.op, array) if gets_array else None
        inputs = None if parts is None else validation.readable_parts(parts)
        if call.reduce_op is not None and inputs is not None and looks_for_nan(self._finds_nan):
            call = call._replace(nan=self._nan_in(inputs))
        if target is not None and inputs is not None:
            inputs = without_overlap(call.collective, self.rank, inputs, target.written)
        plan = self._plan(call, parts, device or _device(parts), array, key, shape)
        work = self._start(plan, inputs, None if target is None else target.written, out, kind, parts)
        if call.needs_grad and call.collective is SEND:
            self._join(work, None, parts)  # its place among the backwards is here, whenever it is waited for
        if target is not None and not target.is_direct:
            work = work.then(target.settled)
            if isinstance(target.own, Tensor) and target.refuse is None and len(self._seen) < KEPT:
                self._seen.add(_strides(target.own))
        follows = stream_follower(array if out is None else out)
        return work if follows is None else work.then(follows)

    def _plan(
        self,
        call: Call,
        parts: Parts | None,
        device: torch.device,
        array: Any = None,
        key: Any = None,
        shape: Shape | None = None,
    ) -> Plan:
        """The plan of calls like this one; kept if the next one can be recognized by its arrays alone."""
        if key is None and recurs(call):
            key = self._key(call, parts, array)
            key = key if device.type == "cpu" else (*key, device)
        elif key is None or self.checks or not is_plain(call):
            return self._new_plan(call, device)
        known = self._plans.get(key)
        if known is None:
            known = Recognizer(self._new_plan(call, device), shape=shape, takes_joined=not self.checks)
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

    def _key(self, call: Call, parts: Parts | None, array: Any) -> tuple[Any, ...]:
        """What ``repeat`` finds the plan by."""
        shape = torch.Size(call.sends[0] if call.sends else call.shape or ())
        if isinstance(parts, Tensor) and call.collective.gives == "parts":
            shape = torch.Size(array.shape) if isinstance(array, Tensor | np.ndarray) else parts.shape
        op: Any = call.tag if call.collective in MESSAGES else RAGGED if call.discovers else call.reduce_op
        key = (call.collective, op, call.root, call.dtype, shape)
        return (*key, len(parts)) if isinstance(parts, list) else key

    def _start(
        self,
        plan: Plan,
        inputs: Parts | None,
        outputs: Parts | None,
        out: Any,
        kind: Any,
        parts: Parts | None,
        waits: bool = False,
    ) -> Work[Any]:
        """Start a planned call; its result is ``out`` where there is one, else made by ``kind``."""
        in_line: InLine | None = plan.carrier.in_line if waits else None
        if in_line is not None and not (self._deferred or self._logs_calls or (out is None and plan.gets)):
            return in_line(inputs, outputs, caller() if self._tells_site else None, self.timeout)
        start = plan.carrier.start or (self._transport.message if plan.is_message else self._transport.start)
        pending, site, earlier = self._pending, None, self._earlier() if self._deferred else None
        if self._tells_site:
            site = caller()
            if pending.latest is not None or pending.entries:
                pending.compare(plan, inputs, outputs, site)
        pending.last = plan.call, site
        if self._logs_calls:
            self._log("%s", plan.call._replace(site=(site or caller()).site()), level=logging.DEBUG)
        work = start(plan, inputs, outputs, site)
        if site is not None:
            work._pending = pending
            with pending.lock:
                if pending.latest is not None:  # of another thread
                    pending.enter_latest()
                pending.latest = work, self._transport.key, plan, site
        work._timeout = self.timeout
        if out is not None:
            work._out = out
        else:
            join = self._join if parts is None else partial(self._join, parts=parts)
            work._join = join if plan.collective is not SEND else None  # of a send, which may be kept for long
            if kind is not None or parts is not None:
                work._kind, work._is_simple = kind, False
        if earlier is not None:
            work._earlier, work._is_simple = earlier, False
        return work

    def _earlier(self) -> tuple[DeferredErrors, list[Work[Any]]]:
        """The calls that failed already, which the next wait raises where none of them was raised till then."""
        return self._deferred, self._deferred.copy()

    def _compares(self, tensor: Tensor) -> bool:
        """Whether the ranks compare a call on such a tensor."""
        return self.checks_on_cuda if tensor.device.type == ACCELERATOR else self.checks

    def _nan_in(self, inputs: Parts) -> str:
        if not self._compares(inputs if isinstance(inputs, Tensor) else inputs[0]):
            text = validation.error_text(self, "find_nan", "the check between ranks", "off", "on")
            raise ArgumentValueError(text)
        return nan_in(inputs)

    def _call(
        self,
        collective: Collective,
        tensor: Tensor,
        reduce_op: str | None = None,
        factor: float | None = None,
        **more: Any,
    ) -> Call:
        """The call of a rank that gives one tensor."""
        more.setdefault("needs_grad", needs_grad(tensor))
        return Call(collective, tuple(tensor.shape), tensor.dtype, tensor.device.type, reduce_op, factor, **more)

    def _parted_call(
        self,
        collective: Collective,
        parts: Parts,
        reduce_op: str | None = None,
        factor: float | None = None,
        **more: Any,
    ) -> Call:
        """The call of a rank that gives one part per rank."""
        sends = None if isinstance(parts, Tensor) or are_equal(parts) else shapes_of(parts)
        call = self._call(collective, parts[0], reduce_op, factor, sends=sends, needs_grad=needs_grad(parts), **more)
        return call if sends is None else call._replace(shape=None)

    def _tensor(self, op: str, array: Any) -> Tensor:
        """An array that is given, as a tensor."""
        tensor = validation.tensor_of(self, op, array)
        validation.refuse_kind(self, op, tensor)
        return tensor

    def _require_discovery(self, op: str, discovers: bool, own: Tensor | None = None) -> None:
        """Refuse what the other ranks can know only where they exchange it; ``own`` is what this rank gives."""
        if not (discovers or (self.checks if own is None else self._compares(own))):
            got, expected = "unknown to the other ranks", "known, or the check on, or discovers=True on every rank"
            raise ArgumentValueError(validation.error_text(self, op, "shape of what is awaited", got, expected))


def looks_for_nan(by_default: bool) -> bool:
    """Whether a reduction's inputs are searched for NaN: as the block says, else ``by_default``."""
    block = block_options()
    return by_default if block is None else block.find_nan


def _strides(tensor: Tensor) -> tuple[Any, Any]:
    """What says whether a tensor's elements share memory."""
    return tensor.shape, tensor.stride()


def _written_back(copy: Tensor, own: Tensor) -> Tensor:
    return own.copy_(copy)


def needs_grad(parts: Parts) -> bool:
    """Whether a part needs a gradient, where gradients are recorded."""
    if not torch.is_grad_enabled():
        return False
    return parts.requires_grad if isinstance(parts, Tensor) else any(part.requires_grad for part in parts)


def shapes_of(parts: Sequence[Tensor]) -> tuple[Shape, ...]:
    """The shape of each part."""
    return tuple(tuple(part.shape) for part in parts)


def are_equal(parts: Sequence[Tensor]) -> bool:
    """Whether the parts have one shape."""
    return all(part.shape == parts[0].shape for part in parts)


def _device(parts: Parts | None) -> torch.device:
    return torch.device("cpu") if parts is None else parts.device if isinstance(parts, Tensor) else parts[0].device
