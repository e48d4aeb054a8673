"""Spellings that write into what they are given: torch's, and those of the frameworks that follow it.

Each call is made with parameters in this order: the output first, then the input; the tensor alone where it
is both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from collshim.conformance.bindings.answers import Answer, Handle, Tree, waited
from collshim.conformance.bindings.binding import (
    Binding,
    address,
    blank,
    blank_values,
    made,
    own,
    own_parts,
    place_in,
)
from collshim.conformance.bindings.places import Place

NO_OPTIONS: Mapping[str, Any] = {}


@dataclass(frozen=True, kw_only=True)
class Writes(Binding):
    """A call that returns None, or a handle, and leaves its result in an argument.

    Attributes:
        with_group: the keyword arguments that say the group.
        done: what ``wait()`` of a handle returns, on calls whose options ask for one.
    """

    with_group: Callable[[Any], Mapping[str, Any]] = lambda group: {"group": group}
    done: Tree = None

    def speak(self, place: Place, group: Any, *arguments: Any, **keywords: Any) -> Tree:
        """Call the function, and wait for the handle that it may return."""
        function = place.function(self.path)
        return waited(function(*arguments, **keywords, **self.options, **self.with_group(group)))

    @property
    def returned(self) -> Tree:
        """What ``speak`` should return."""
        return Handle(self.done) if self.options.get("async_op") else None


@dataclass(frozen=True, kw_only=True)
class AllGatherList(Writes):
    """``all_gather(tensor_list, tensor)``.

    Attributes:
        replaces: whether the list gets new tensors; else the tensors in it are written.
        loose: whether the tensors in the list need not be contiguous.
    """

    collective: ClassVar[str] = "all_gather"
    replaces: bool = False
    loose: bool = False

    def call(self, place: Place, case: Any, group: Any) -> Answer:
        """Gather into a list of blank tensors."""
        tensor, size = own(place, case), len(case.ranks)
        given = [self._blank(case, case.part_shape(giver)) for giver in range(size)]
        tensor_list = list(given)
        returned = self.speak(place, group, tensor_list, tensor)
        arguments = {"tensor_list": tensor_list, "tensor": tensor, "the tensors first in tensor_list": given}
        return Answer(returned, arguments, {"tensor_list holds the tensors given": _same(tensor_list, given)})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Every rank's tensor, in rank order."""
        gathered = reference.all_gather(case.arrays())[rank]
        blanks = [blank_values(case, part.shape) for part in gathered]
        arguments = {"tensor_list": gathered, "tensor": case.arrays()[rank]}
        first = {"the tensors first in tensor_list": blanks if self.replaces else gathered}
        return Answer(self.returned, arguments | first, {"tensor_list holds the tensors given": not self.replaces})

    def _blank(self, case: Any, shape: Sequence[int]) -> Any:
        values = blank_values(case, shape)
        return made(case, case.laid_out(values) if self.loose else values)


@dataclass(frozen=True, kw_only=True)
class AllGatherInto(Writes):
    """``all_gather_into_tensor(output_tensor, input_tensor)``.

    Attributes:
        output: the form of the output: "concatenated" along axis 0, "stacked" or "flat".
    """

    collective: ClassVar[str] = "all_gather"
    output: str = "concatenated"

    def call(self, place: Place, case: Any, group: Any) -> Answer:
        """Gather into one blank tensor."""
        tensor = own(place, case)
        whole = blank(case, self._shape(case))
        before = address(whole, case)
        returned = self.speak(place, group, whole, tensor)
        facts = {"output_tensor keeps its memory": address(whole, case) == before}
        return Answer(returned, {"output_tensor": whole, "input_tensor": tensor}, facts)

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """All ranks' tensors, in rank order, in one."""
        gathered = reference.stacked(reference.all_gather(case.arrays())[rank]).reshape(self._shape(case))
        arguments = {"output_tensor": gathered, "input_tensor": case.arrays()[rank]}
        return Answer(self.returned, arguments, {"output_tensor keeps its memory": True})

    def _shape(self, case: Any) -> tuple[int, ...]:
        size, shape = len(case.ranks), case.shape
        if self.output == "flat":
            return (size * int(np.prod(shape)),)
        return (size, *shape) if self.output == "stacked" else (size * shape[0], *shape[1:])


@dataclass(frozen=True, kw_only=True)
class AllReduceInPlace(Writes):
    """``all_reduce(tensor)``.

    Attributes:
        with_op: the keyword arguments that say the reduction.
    """

    collective: ClassVar[str] = "all_reduce"
    with_op: Callable[[Place, str], Mapping[str, Any]] = lambda place, op: NO_OPTIONS

    def call(self, place: Place, case: Any, group: Any) -> Answer:
        """Reduce in place."""
        tensor = own(place, case)
        before = address(tensor, case)
        returned = self.speak(place, group, tensor, **self.with_op(place, case.reduce_op))
        return Answer(returned, {"tensor": tensor}, {"tensor keeps its memory": address(tensor, case) == before})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """The reduction, on every rank."""
        reduced = reference.all_reduce(case.arrays(), case.reduce_op)[rank]
        return Answer(self.returned, {"tensor": reduced}, {"tensor keeps its memory": True})


@dataclass(frozen=True, kw_only=True)
class AllToAllList(Writes):
    """``all_to_all(output_tensor_list, input_tensor_list)``.

    Attributes:
        aliases_own: whether the output that comes from this rank itself shares memory with its input; arrays
            that cannot be given other memory (NumPy) are filled.
    """

    collective: ClassVar[str] = "all_to_all"
    aliases_own: bool = False

    def call(self, place: Place, case: Any, group: Any) -> Answer:
        """Exchange into a list of blank tensors."""
        rank = place_in(case, place)
        sent = own_parts(place, case)
        given = [blank(case, case.part_shape(giver, rank)) for giver in range(len(case.ranks))]
        received = list(given)
        returned = self.speak(place, group, received, sent)
        aliased = address(received[rank], case) == address(sent[rank], case)
        facts = {"output_tensor_list holds the tensors given": _same(received, given)}
        shares = {} if 0 in case.part_shape(rank, rank) else {_SHARES: aliased}
        return Answer(returned, {"output_tensor_list": received, "input_tensor_list": sent}, facts | shares)

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Every rank's part for this one, in rank order."""
        parts = case.parts()
        arguments = {
            "output_tensor_list": reference.all_to_all(parts)[rank],
            "input_tensor_list": parts[rank],
        }
        aliased = self.aliases_own and case.kind != "numpy"
        shares = {} if 0 in case.part_shape(rank, rank) else {_SHARES: aliased}
        return Answer(self.returned, arguments, {"output_tensor_list holds the tensors given": True} | shares)


_SHARES = "this rank's own output shares memory with its input"


@dataclass(frozen=True, kw_only=True)
class AllToAllSingle(Writes):
    """``all_to_all_single(output, input, output_split_sizes, input_split_sizes)``; equal parts: no sizes."""

    collective: ClassVar[str] = "all_to_all"

    def call(self, place: Place, case: Any, group: Any) -> Answer:
        """Exchange the pieces of one tensor into another, blank one."""
        given = made(case, joined_input(case, place_in(case, place)))
        whole = blank(case, _joined_output_shape(case, place_in(case, place)))
        returned = self.speak(place, group, whole, given, *split_sizes(case, place_in(case, place)))
        return Answer(returned, {"output": whole, "input": given})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Every rank's piece for this one, end to end in rank order."""
        whole = reference.concatenated(reference.all_to_all(case.parts())[rank])
        return Answer(self.returned, {"output": whole, "input": joined_input(case, rank)})


def joined_input(case: Any, rank: int) -> Any:
    """This rank's parts end to end along axis 0, in the case's layout."""
    return case.laid_out(np.concatenate(case.parts()[rank]))


def split_sizes(case: Any, rank: int) -> tuple[list[int], list[int]] | tuple[()]:
    """Lengths along axis 0 of what comes from, and what goes to, each rank; nothing where all are equal."""
    if case.lengths is None:
        return ()
    return [sent[rank] for sent in case.lengths], list(case.lengths[rank])


def _joined_output_shape(case: Any, rank: int) -> tuple[int, ...]:
    shapes = [case.part_shape(giver, rank) for giver in range(len(case.ranks))]
    return (sum(shape[0] for shape in shapes), *shapes[0][1:])


def _same(ours: Sequence[object], theirs: Sequence[object]) -> bool:
    return len(ours) == len(theirs) and all(one is other for one, other in zip(ours, theirs, strict=True))
