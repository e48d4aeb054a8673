"""Repeat a call like an earlier, validated one: by its plan, or as a whole in the compiled core."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import torch
from torch import Tensor
from torch.autograd import profiler

from collshim.arrays import Arrays
from collshim.calls.collective import Collective
from collshim.calls.plan import Carrier
from collshim.calls.recognizer import Recognizer, dense
from collshim.calls.repeats import Repeated, are_kept, keep, key_of, may_keep, repeats_of
from collshim.calls.site import caller
from collshim.layout import Parts
from collshim.posting import Posting, strides_of
from collshim.settings import block_options
from collshim.transports import Transport
from collshim.work import Work, followed


class Repeating(Posting):
    """The part of a communicator that repeats calls; see ``Communicator`` for the attributes."""

    def repeat(
        self,
        collective: Collective,
        array: Arrays,
        out: Arrays,
        op: Hashable = None,
        root: Hashable = None,
    ) -> Work[Arrays] | None:
        """Post a call like one that was validated before; post nothing and return None if it needs validation.

        Args:
            collective: the record; ``array``, ``out`` and ``root`` are those of the method of its name.
            op: the reduce operation; or the splits of an all_to_all; or the tag of a message.
            root: or the other rank of a message.
        """
        if root is not None and type(root) is not int:
            return None
        pending = self._pending
        is_alone = pending.latest is None and not pending.entries
        if is_alone and self.repeats and (work := self._repeat_in_core(collective, array, out, op, root)) is not None:
            return work
        work = self.repeat_by_plan(collective, array, out, op, root)
        if is_alone and work is not None:
            known = self._latest.get((collective, op, root))
            if known is not None and known.plan.carrier.make_repeat is not None and may_keep(known):
                self._keep_posted(known, array, out, op, root)
        return work

    def repeat_by_plan(
        self,
        collective: Collective,
        array: Arrays,
        out: Arrays,
        op: Hashable = None,
        root: Hashable = None,
        *,
        waits: bool = False,
    ) -> Work[Arrays] | None:
        """Do the same as ``repeat``, but let the core neither repeat the call nor keep it for that.

        ``waits`` is whether the caller waits immediately, on this thread's stream. The work is then ``COMPLETE`` if the
        core finishes the call, or if NCCL enqueues its kernel on that stream.
        """
        if root is not None and type(root) is not int:
            return None
        try:
            known = self._latest.get((collective, op, root))
        except TypeError:  # op cannot be hashed
            return None
        if type(array) is Tensor and (out is None or type(out) is Tensor):
            try:
                if known is None or not known.recalls(array, out):
                    known = self._like_earlier(collective, array, out, op, root)
            except (KeyError, RuntimeError):  # no plan; a tensor without a shape
                return None
            if known is not None:
                plan = known.plan
                inputs, outputs = (
                    known.as_planned(array, out) if known.has_parts else (array if plan.gives else None, out)
                )
                return self._start(plan, inputs, outputs, out, None, None, waits)
        elif known is not None and known.recalls_listed(array, out):
            return self._start(known.plan, array, out, out, None, None, waits)
        work = self._repeat_by_look(collective, array, out, op, root, waits)
        return work if work is None else followed(work, array if out is None else out)

    def recall(
        self, collective: Collective, array: Arrays, out: Arrays, op: Hashable, root: Hashable, waits: bool
    ) -> Work[Arrays] | None:
        """Repeat a call between processes that do not compare it, of one tensor with ``out``; else return None."""
        if type(array) is not Tensor or type(out) is not Tensor:
            return None
        try:
            known = self._latest.get((collective, op, root))
            if known is None or not known.recalls(array, out):
                known = self._like_earlier(collective, array, out, op, root)
        except (KeyError, TypeError, RuntimeError):  # as in ``repeat``
            return None
        if known is None:
            return None
        plan = known.plan
        carrier: Carrier = plan.carrier
        if carrier.start is None:
            return None
        inputs = known.parts(array, out) if plan.gives_parts else array if plan.gives else None
        is_seen = self._observers.by_default or block_options() or profiler._is_profiler_enabled
        if waits and (in_line := carrier.in_line) is not None and not (self._deferred or is_seen):
            return in_line(plan, inputs, out, caller(3) if self._exchanges_sites else None, self._timeout)
        return self._start(plan, inputs, out, out, None, None, waits)

    def may_keep(self, collective: Collective, op: Hashable, root: Hashable) -> bool:
        """Return whether the core might keep the latest call of this kind."""
        known = self._latest.get((collective, op, root))
        return known is not None and may_keep(known)

    def keep_repeat(self, collective: Collective, op: Hashable, root: Hashable, call: Repeated) -> None:
        """Let the core repeat calls like one that ``repeat_by_plan`` has repeated, if it can."""
        if any(repeat.fits(*call.own) for repeat in self.repeats.get(call.key, ())):
            return  # it is kept, but the core declined it: the call was late, or observed
        tensor = dense(call.planned[0])
        known = self._plans.get(collective) if tensor is None else self._known(collective, tensor, op, root)
        if known is not None:
            keep(self, known, call, self._observers)

    def is_alone(self) -> bool:
        """Return whether no call of this rank is pending, whose memory a new call's would have to be compared with."""
        return self._pending.latest is None and not self._pending.entries

    def _repeat_in_core(
        self, collective: Collective, array: Arrays, out: Arrays, op: Hashable, root: Hashable
    ) -> Work[Arrays] | None:
        """Let the core post a call whose caller waits later; return None, with nothing posted, if it cannot."""
        if profiler._is_profiler_enabled:
            return None
        for known in repeats_of(self, collective, op, root, array, out):
            work = known.post(array, out)
            if work is not None:
                return work
        return None

    def _keep_posted(self, known: Recognizer, array: Arrays, out: Arrays, op: Hashable, root: Hashable) -> None:
        """Let the core post calls like one that was posted for a caller that waits later, if it can."""
        if not are_kept(known.plan, array, out):
            known.tries += 1
            return
        collective, arrays = known.plan.collective, (array, out)
        call = Repeated(key_of(collective, op, root, *arrays), arrays, arrays, _as_given, True)
        self.keep_repeat(collective, op, root, call)

    def forget_plans(self) -> None:
        """Drop all plans; later calls are validated again."""
        self._plans.clear()
        self._latest.clear()
        self.repeats.clear()

    def replace_transport(self, transport: Transport) -> Transport:
        """Set another transport, and return the earlier one. Plans start calls without it, so they are dropped."""
        earlier, self._transport = self._transport, transport
        self.forget_plans()
        return earlier

    def _like_earlier(
        self, collective: Collective, array: Tensor, out: Arrays, op: Hashable, root: Hashable
    ) -> Recognizer | None:
        """Return the recognizer of calls like this one, to be tried first next time; None if it needs a closer look.

        Raises:
            KeyError: there is no plan for such arguments.
        """
        key: Any = (collective, op, root, array.dtype, array.shape)
        known = self._plans[key if array.is_cpu else (*key, array.device)]
        if not known.recalls(array, out):
            return None
        self._latest[collective, op, root] = known
        return known

    def _repeat_by_look(
        self, collective: Collective, array: Arrays, out: Arrays, op: Hashable, root: Hashable, waits: bool
    ) -> Work[Arrays] | None:
        """Repeat a call after inspecting each of its arrays."""
        tensor = dense(array)
        if tensor is None:
            return self._repeat_strided(collective, array, out, op, root) if type(array) is Tensor else None
        known = self._known(collective, tensor, op, root)
        if known is None:
            return None
        self._latest[collective, op, root] = known
        plan = known.plan
        if plan.gives_parts and (tensor := known.parts(tensor, out)) is None:
            return None
        inputs, outputs = tensor if plan.gives else None, None
        if out is array and known.in_place:
            outputs = tensor
        elif out is None or not plan.gets:
            if known.needs_out:
                return None
            kind = None if type(array) is Tensor or out is not None else self._kind(plan, array)
            if kind is not None or out is not None:
                return self._start(plan, inputs, None, None, kind, None, waits)
        elif (places := known.places(tensor, out)) is not None:
            inputs, outputs = places
        else:
            return None
        known.remember(array, out, inputs, outputs)
        return self._start(plan, inputs, outputs, out, None, None, waits)

    def _known(self, collective: Collective, tensor: Parts, op: Hashable, root: Hashable) -> Recognizer | None:
        """Return the recognizer of calls with this kind of tensor, or list of tensors; None if there is none yet."""
        first = tensor if type(tensor) is Tensor else tensor[0]
        key: tuple[Any, ...] = (collective, op, root, first.dtype, first.shape)
        key = key if first is tensor else (*key, len(tensor))
        try:
            return self._plans.get(key if first.is_cpu else (*key, first.device))
        except TypeError:  # op cannot be hashed
            return None

    def _repeat_strided(
        self, collective: Collective, array: Tensor, out: Arrays, op: Hashable, root: Hashable
    ) -> Work[Arrays] | None:
        """Repeat a call with a non-contiguous tensor by copying it; in place only if its strides were validated."""
        if not array.is_cpu or array.layout is not torch.strided or array.is_nested or array.is_contiguous():
            return None
        is_own = out is array
        is_unseen = is_own and strides_of(array) not in self._seen
        if is_unseen or array.requires_grad or array.is_neg() or array.is_inference():
            return None
        copy = array.contiguous()
        work = self.repeat_by_plan(collective, copy, copy if is_own else out, op, root)
        if work is None or work.out is not copy:
            return work
        work.out = array
        return work.then(lambda own: own.copy_(copy))


def _as_given(comm: Repeating, array: Any, out: Any) -> tuple[Any, Any]:
    """Return the arrays as they were passed to ``repeat``."""
    return array, out
