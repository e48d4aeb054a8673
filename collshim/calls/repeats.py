"""Calls that the compiled core repeats as a whole, from checking the tensors to writing the result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias
from weakref import ref

import torch
from torch import Tensor

from collshim.calls.allocation import fresh
from collshim.calls.call import Call
from collshim.calls.collective import Collective
from collshim.calls.likeness import Likeness, likeness_of
from collshim.calls.pending import tell_change, version_of
from collshim.calls.plan import Plan
from collshim.calls.recognizer import Recognizer, dense
from collshim.calls.site import Caller
from collshim.work import COMPLETE, CompletedWork, Work, is_seconds

_FORMS = 8
"""The number of variants of a call, such as different shapes or dtypes, that are kept."""

_TRIES = 16
"""The number of attempts to keep a call of one plan."""

_KEYS = 256
"""The number of calls that are kept for one communicator."""

_KINDS = (Tensor, list)

Arrange: TypeAlias = Callable[[Any, Any, Any], tuple[Any, Any]]
"""A function that converts the caller's input and ``out`` to those that a communicator takes."""


class Repeat(Protocol):
    """A repeated call of one plan, whose tensors are like earlier ones."""

    def fits(self, array: object, out: object) -> bool:
        """Return whether these objects, which can be of any type, are like the earlier tensors."""
        ...

    def call(self, array: object, out: object) -> Work[Any] | None:
        """Repeat the call with these tensors, and wait for a first slice.

        Return ``COMPLETE``, or a work that must be waited for, or None, with nothing posted, if the call needs a closer
        look.
        """

    def post(self, array: object, out: object) -> Work[Any] | None:
        """Repeat the collective with these tensors, for a caller that waits later.

        Return what the pattern's ``posted`` returns, or None, with nothing posted, if the call needs a closer look.
        """


class Pattern(NamedTuple):
    """The facts about a call from which the core recognizes similar calls.

    Attributes:
        alike: a function that returns whether tensors resemble the call's tensors.
        in_place: whether the input is also the output.
        inputs, outputs: for each of the two, the number of tensors in it, or None if it is a tensor; and the bytes of
            each tensor.
        counts: whether autograd counts the write of the output.
        allocate: allocates the output if the caller passes None; None if the caller passes one, or there is none.
        prepare: returns, for a call's tensors, the input and output that the plan takes, and the seconds of a wait.
        posted: returns the work of a call whose caller waits later. Its arguments are the work until then, the call's
            tensors, the call with its line, and its ``Agreed``.
        observers: the communicator's observers.
        timeout: how many seconds a wait may take.
    """

    alike: Likeness
    in_place: bool
    inputs: tuple[int | None, int]
    outputs: tuple[int | None, int]
    counts: bool
    allocate: Callable[[], Tensor] | None
    prepare: Callable[[Any, Any], tuple[Any, Any, float]]
    posted: Callable[[Work[Any], Any, Any, tuple[Call, Caller | None], Any], Work[Any]]
    observers: Any
    timeout: float


MakeRepeat: TypeAlias = Callable[..., Repeat | None]
"""A function that makes the ``Repeat`` of a plan and a ``Pattern``, or None if the core cannot repeat the call."""

Repeats: TypeAlias = dict[Hashable, tuple[Repeat, ...]]
"""The calls that the core repeats, by the value that identifies a call apart from its tensors."""


class Repeated(NamedTuple):
    """A call that was repeated, to be kept.

    Attributes:
        key: the value that identifies the call apart from its tensors.
        own: its input and ``out``, as the caller passed them; ``planned``: those that the communicator took.
        arrange: see ``Arrange``.
        counts: whether autograd counts the write of ``out``.
    """

    key: Hashable
    own: tuple[Any, Any]
    planned: tuple[Any, Any]
    arrange: Arrange
    counts: bool


def key_of(collective: Collective, op: Hashable, root: Hashable, array: Any, out: Any) -> tuple[Hashable, ...]:
    """Return the key of calls like this one: it includes a size, since programs call with tensors of many sizes."""
    tensor = array if type(array) is Tensor else out
    return collective, op, root, tensor.nbytes if type(tensor) is Tensor else None


def repeats_of(
    comm: Any, collective: Collective, op: Hashable, root: Hashable, array: Any, out: Any
) -> Sequence[Repeat]:
    """Return what the communicator keeps under ``key_of`` these arguments."""
    tensor = array if type(array) is Tensor else out
    try:
        kept: Sequence[Repeat] = comm.repeats.get(
            (collective, op, root, tensor.nbytes if type(tensor) is Tensor else None), ()
        )
    except (TypeError, RuntimeError):  # the operation or the root cannot be hashed; a tensor without a size
        return ()
    return kept


def may_keep(known: Recognizer) -> bool:
    """Return whether the core might keep a further call of a recognizer."""
    return known.tries < _TRIES and known.plan.carrier.make_repeat is not None


def are_kept(plan: Plan, array: Any, out: Any) -> bool:
    """Return whether the core takes such arrays from a caller of the engine; None for a result of known shape too."""
    has_output = type(out) in _KINDS or (out is None and plan.shape is not None) or not plan.gets
    has_input = array.is_contiguous() if type(array) is Tensor else type(array) is list
    return has_output and (has_input or not plan.gives)


def keep(comm: Any, known: Recognizer, call: Repeated, observers: object) -> None:
    """Keep a call in the communicator's ``repeats`` if the core can repeat it; ``known`` is its recognizer."""
    repeats: Repeats = comm.repeats
    kept, (array, out), plan = repeats.get(call.key, ()), call.own, known.plan
    make, allocate = plan.carrier.make_repeat, None
    if make is None or len(kept) >= _FORMS or (not kept and len(repeats) >= _KEYS):
        return
    known.tries += 1
    if not _are_direct(known, call):
        return
    if out is None and plan.gets:
        allocate = fresh(plan)
        out = allocate()
    tensors = _tensors(array) if array is out else _tensors(array) + _tensors(out)
    alike = likeness_of(*tensors or [torch.empty(0, device="cpu")])
    if alike is None:
        return
    own = ref(comm)  # the communicator is closed when it is dropped
    then = partial(_prepared, own, known, call.arrange), partial(_posted, own, plan, allocate is not None)
    sizes = array is out, _extent(array), _extent(out)
    repeat: Repeat | None = make(plan, Pattern(alike, *sizes, call.counts, allocate, *then, observers, comm.timeout))
    if repeat is not None:
        repeats[call.key] = (*kept, repeat)


def _prepared(comm: ref[Any], known: Recognizer, arrange: Arrange, array: Any, out: Any) -> tuple[Any, Any, float]:
    own: Any = comm()
    return *known.as_planned(*arrange(own, array, out)), own.timeout


def _posted(
    comm: ref[Any],
    plan: Plan,
    is_fresh: bool,
    work: Work[Any],
    array: Any,
    out: Any,
    last: tuple[Call, Caller | None],
    agreed: Any,
) -> Work[Any]:
    """Return the work of a call that the core has posted, and finished if ``work`` is ``COMPLETE``."""
    result = out if plan.gets else None
    if work is COMPLETE:
        work = Finished(plan, last[1], array if plan.gives else None, result)
        work.joint = agreed.joint
    own: Any = comm()
    own.deliver(work, plan, last[1], None if is_fresh else result)
    return work


def _tensors(arrays: Any) -> list[Any]:
    return arrays if type(arrays) is list else [] if arrays is None else [arrays]


def _extent(arrays: Any) -> tuple[int | None, int]:
    tensors = _tensors(arrays)
    return None if type(arrays) is Tensor else len(tensors), tensors[0].nbytes if tensors else 0


def _are_direct(known: Recognizer, call: Repeated) -> bool:
    """Return whether the transport used the caller's own tensors, or views of their whole memory."""
    plan, (array, out) = known.plan, call.planned
    has_out = out is not None  # otherwise it is allocated
    for moves, own, planned in ((plan.gives, call.own[0], array), (plan.gets and has_out, call.own[1], out)):
        tensors = _tensors(own)
        if any(type(one) is not Tensor or one.requires_grad or one.is_nested for one in tensors):
            return False
        if len({tensor.nbytes for tensor in tensors}) > 1 or (moves and not _are_same(tensors, planned)):
            return False
    if not plan.gets:
        return type(array) is not Tensor or dense(array) is array
    if type(array) is list or type(out) is list:
        return known.recalls_listed(array, out)
    return known.recalls(array, out)


def _are_same(tensors: list[Any], planned: Any) -> bool:
    """Return whether the planned arrays have exactly the memory of these tensors."""
    views = _tensors(planned)
    return len(views) == len(tensors) and all(
        type(view) is Tensor and (view.data_ptr(), view.nbytes) == (tensor.data_ptr(), tensor.nbytes) != (0, 0)
        for view, tensor in zip(views, tensors, strict=True)
    )


class Finished(CompletedWork[Any]):
    """A call that was over when it was posted. Like a call that was not, it shows changes of its input until the wait.

    Attributes:
        plan: the call's plan.
        caller: the line of the call, if the ranks exchange lines.
    """

    def __init__(self, plan: Plan, caller: Caller | None, array: Any, out: Any) -> None:
        """Make the work of a call with this input and output."""
        self._claim = True
        self.plan = plan
        self.caller = caller
        self.inputs = array
        self.outputs = out
        self.version = None if caller is None else version_of(array)

    @property
    def call(self) -> Call:
        """The call, with the line that made it if the ranks exchange lines."""
        call = self.plan.call
        return call if self.caller is None else call._replace(site=self.caller.site())

    def wait(self, timeout: float | None = None) -> Any:
        """See ``Work``."""
        version, delivery = self.version, self.delivery
        if version is not None and self.inputs._version != version:
            tell_change(self)
        elif not (self._is_changed or self.joint) and delivery.is_plain and (timeout is None or is_seconds(timeout)):
            self.version, self._result, self._settled = None, self.outputs, True
            if delivery.pending is not None and not self.is_freed:
                self.is_freed = True
                delivery.pending.remove(self)
            return self.outputs
        return super().wait(timeout)
