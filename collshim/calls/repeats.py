"""Calls that the compiled core repeats as a whole, from checking the tensors to writing the result."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias
from weakref import ref

import torch
from torch import Tensor

from collshim.calls.likeness import Likeness, likeness_of
from collshim.calls.recognizer import Recognizer, dense
from collshim.work import Work

_FORMS = 8
"""The number of variants of a call, such as different shapes or dtypes, that are kept."""

_TRIES = 8
"""The number of attempts to keep a call of one plan."""

_KEYS = 256
"""The number of calls that are kept for one communicator."""

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


class Pattern(NamedTuple):
    """The facts about a call from which the core recognizes similar calls.

    Attributes:
        alike: a function that returns whether tensors resemble the call's tensors.
        in_place: whether the input is also the output.
        inputs, outputs: for each of the two, the number of tensors in it, or None if it is a tensor; and the bytes of
            each tensor.
        counts: whether autograd counts the write of the output.
        prepare: returns, for a call's tensors, the input and output that the plan takes, and the seconds of a wait.
        observers: the communicator's observers.
        timeout: how many seconds a wait may take.
    """

    alike: Likeness
    in_place: bool
    inputs: tuple[int | None, int]
    outputs: tuple[int | None, int]
    counts: bool
    prepare: Callable[[Any, Any], tuple[Any, Any, float]]
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


def keep(comm: Any, known: Recognizer, call: Repeated, observers: object) -> None:
    """Keep a call in the communicator's ``repeats`` if the core can repeat it; ``known`` is its recognizer."""
    repeats: Repeats = comm.repeats
    kept, (array, out), make = repeats.get(call.key, ()), call.own, known.plan.carrier.make_repeat
    if make is None or len(kept) >= _FORMS or (not kept and len(repeats) >= _KEYS):
        return
    known.tries += 1
    if known.tries > _TRIES or not _are_direct(known, call):
        return
    tensors = _tensors(array) if array is out else _tensors(array) + _tensors(out)
    alike = likeness_of(*tensors or [torch.empty(0, device="cpu")])
    if alike is None:
        return
    prepare = partial(_prepared, ref(comm), known, call.arrange)  # the communicator is closed when it is dropped
    pattern = Pattern(alike, array is out, _extent(array), _extent(out), call.counts, prepare, observers, comm.timeout)
    repeat: Repeat | None = make(known.plan, pattern)
    if repeat is not None:
        repeats[call.key] = (*kept, repeat)


def _prepared(comm: ref[Any], known: Recognizer, arrange: Arrange, array: Any, out: Any) -> tuple[Any, Any, float]:
    own: Any = comm()
    return *known.as_planned(*arrange(own, array, out)), own.timeout


def _tensors(arrays: Any) -> list[Any]:
    return arrays if type(arrays) is list else [arrays]


def _extent(arrays: Any) -> tuple[int | None, int]:
    tensors = _tensors(arrays)
    return len(tensors) if type(arrays) is list else None, tensors[0].nbytes if tensors else 0


def _are_direct(known: Recognizer, call: Repeated) -> bool:
    """Return whether the transport used the caller's own tensors, or views of their whole memory."""
    plan, (array, out) = known.plan, call.planned
    for moves, own, planned in ((plan.gives, call.own[0], array), (plan.gets, call.own[1], out)):
        tensors = _tensors(own)
        if any(type(one) is not Tensor or one.requires_grad or one.is_nested for one in tensors):
            return False
        if len({tensor.nbytes for tensor in tensors}) > 1 or (moves and not _are_same(tensors, planned)):
            return False
    if not plan.gets:
        return type(array) is list or dense(array) is array
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
