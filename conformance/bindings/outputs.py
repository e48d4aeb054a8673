"""Spellings that write into what they are given: torch's, and those of the frameworks that follow it.

Each call is made with parameters in this order: the output first, then the input; the tensor alone where it
is both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from collshim.conformance.bindings.answers import Answer, Handle, Tree, waited
from collshim.conformance.bindings.binding import Binding, address, blank, blank_values, own, place_in
from collshim.conformance.bindings.invalid import invalidated
from collshim.conformance.bindings.rank_context import RankContext

NO_OPTIONS: Mapping[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class Writes(Binding):
    """A call that returns None, or a handle, and leaves its result in an argument.

    Attributes:
        with_group: the keyword arguments that say the group.
        with_op: the keyword arguments that say the reduction.
        with_root: the keyword arguments that say the root.
        done: what ``wait()`` of a handle returns, on calls whose options ask for one.
    """

    with_group: Callable[[Any], Mapping[str, Any]] = lambda group: {"group": group}
    with_op: Callable[[RankContext, str], Mapping[str, Any]] = lambda place, op: NO_OPTIONS
    with_root: Callable[[Any], Mapping[str, Any]] = lambda case: NO_OPTIONS
    done: Tree = None

    def speak(self, context: RankContext, case: Any, group: Any, *arguments: Any, **keywords: Any) -> Tree:
        """Call the function, and wait for the handle that it may return."""
        function = context.function(self.path)
        said = {**self.with_root(case), **self.with_op(context, case.reduce_op), **self.with_group(group)}
        return waited(function(*invalidated(case.fault, arguments), **keywords, **said, **self.options))

    @property
    def returned(self) -> Tree:
        """What ``speak`` should return."""
        return Handle(self.done) if self.options.get("async_op") else None


@dataclass(frozen=True, kw_only=True)
class AllReduceInPlace(Writes):
    """``all_reduce(tensor)``."""

    collective: ClassVar[str] = "all_reduce"
    result: ClassVar[str] = "tensor"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Reduce in place."""
        tensor = own(context, case)
        before = address(tensor, case)
        returned = self.speak(context, case, group, tensor)
        return Answer(returned, {"tensor": tensor}, {KEPT: address(tensor, case) == before})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """The reduction, on every rank."""
        reduced = reference.all_reduce(case.arrays(), case.reduce_op)[rank]
        return Answer(self.returned, {"tensor": reduced}, {KEPT: True})


@dataclass(frozen=True, kw_only=True)
class ReduceInPlace(Writes):
    """``reduce(tensor)``: the root's tensor is written, the others' stay as they are."""

    collective: ClassVar[str] = "reduce"
    result: ClassVar[str] = "tensor"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Reduce to the root, in place; where the others' tensors lie is not said."""
        tensor = own(context, case)
        before = address(tensor, case)
        returned = self.speak(context, case, group, tensor)
        there = place_in(case, context) == case.root
        facts = {KEPT: address(tensor, case) == before} if there else {}
        return Answer(returned, {"tensor": tensor}, facts)

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """The reduction on the root."""
        reduced = reference.reduce(case.arrays(), case.root, case.reduce_op)[rank]
        if reduced is None:
            return Answer(self.returned, {"tensor": case.arrays()[rank]})
        return Answer(self.returned, {"tensor": reduced}, {KEPT: True})


@dataclass(frozen=True, kw_only=True)
class BroadcastInPlace(Writes):
    """``broadcast(tensor)``."""

    collective: ClassVar[str] = "broadcast"
    result: ClassVar[str] = "tensor"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Broadcast in place; a blank tensor of the case's layout off the root."""
        tensor = own(context, case) if place_in(case, context) == case.root else blank(case, case.shape, loose=True)
        before = address(tensor, case)
        returned = self.speak(context, case, group, tensor)
        return Answer(returned, {"tensor": tensor}, {KEPT: address(tensor, case) == before})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """The root's tensor, on every rank."""
        held = reference.broadcast(case.arrays(), case.root)[rank]
        return Answer(self.returned, {"tensor": held}, {KEPT: True})


@dataclass(frozen=True, kw_only=True)
class AllReduceCoalesced(Writes):
    """``all_reduce_coalesced(tensors)``: several tensors in one call, in place."""

    collective: ClassVar[str] = "all_reduce"
    result: ClassVar[str] = "tensors"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Reduce the rank's tensor and a second one of the same values."""
        tensors = [own(context, case), own(context, case)]
        return Answer(self.speak(context, case, group, tensors), {"tensors": tensors})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Both reductions, on every rank."""
        return Answer(self.returned, {"tensors": [reference.all_reduce(case.arrays(), case.reduce_op)[rank]] * 2})


@dataclass(frozen=True, kw_only=True)
class AllGatherCoalesced(Writes):
    """``all_gather_coalesced(output_tensor_lists, input_tensor_list)``: several tensors in one call."""

    collective: ClassVar[str] = "all_gather"
    result: ClassVar[str] = "output_tensor_lists"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Gather the rank's tensor and a second one of the same values: ``output_tensor_lists[rank][tensor]``."""
        given = [own(context, case), own(context, case)]
        lists = [[blank(case, case.shape) for _ in given] for _ in case.ranks]
        return Answer(self.speak(context, case, group, lists, given), {"output_tensor_lists": lists})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """For every rank a list of its two tensors."""
        gathered = reference.all_gather(case.arrays())[rank]
        return Answer(self.returned, {"output_tensor_lists": [[part, part] for part in gathered]})


KEPT = "tensor keeps its memory"


def blanks_of(case: Any, arrays: Sequence[Any]) -> list[Any]:
    """The values of blank arrays in the shapes of ``arrays``."""
    return [blank_values(case, array.shape) for array in arrays]
