"""Spellings whose input or output holds one part per rank in a single array."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from collshim.conformance.bindings.answers import Answer
from collshim.conformance.bindings.binding import address, blank, blank_values, made, own, place_in
from collshim.conformance.bindings.outputs import Writes
from collshim.conformance.bindings.rank_context import RankContext


@dataclass(frozen=True, kw_only=True)
class AllGatherInto(Writes):
    """``all_gather_into_tensor(output_tensor, input_tensor)``.

    Attributes:
        output: the form of the output: "concatenated" along axis 0, "stacked" or "flat".
    """

    collective: ClassVar[str] = "all_gather"
    result: ClassVar[str] = "output_tensor"
    output: str = "concatenated"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Gather into one blank tensor."""
        tensor = own(context, case)
        whole = blank(case, joined_shape(case, self.output))
        before = address(whole, case)
        returned = self.speak(context, case, group, whole, tensor)
        return Answer(
            returned, {"output_tensor": whole, "input_tensor": tensor}, {KEPT: address(whole, case) == before}
        )

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """All ranks' tensors, in rank order, in one."""
        gathered = reference.stacked(reference.all_gather(case.arrays())[rank])
        whole = gathered.reshape(joined_shape(case, self.output))
        return Answer(self.returned, {"output_tensor": whole, "input_tensor": case.arrays()[rank]}, {KEPT: True})


@dataclass(frozen=True, kw_only=True)
class AllGatherUneven(Writes):
    """``all_gather_into_tensor_uneven(output, input, output_split_sizes)``: the ranks' lengths may differ."""

    collective: ClassVar[str] = "all_gather"
    result: ClassVar[str] = "output"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Gather into one blank tensor, of which each rank's rows are known."""
        tensor = own(context, case)
        shapes = [case.part_shape(giver) for giver in range(len(case.ranks))]
        output = blank(case, (sum(shape[0] for shape in shapes), *shapes[0][1:]))
        sizes = {"output_split_sizes": [shape[0] for shape in shapes]}
        return Answer(self.speak(context, case, group, output, tensor, **sizes), {"output": output, "input": tensor})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """All ranks' rows, in rank order."""
        whole = reference.concatenated(reference.all_gather(case.arrays())[rank])
        return Answer(self.returned, {"output": whole, "input": case.arrays()[rank]})


@dataclass(frozen=True, kw_only=True)
class ReduceScatterInto(Writes):
    """``reduce_scatter_tensor(output, input)``.

    Attributes:
        input: the form of the input: "concatenated" along axis 0, "stacked" or "flat".
        sized: whether the lengths of the parts are told as ``input_split_sizes``.
    """

    collective: ClassVar[str] = "reduce_scatter"
    result: ClassVar[str] = "output"
    input: str = "concatenated"
    sized: bool = False

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Reduce and scatter into a blank tensor."""
        rank = place_in(case, context)
        whole = made(case, self._whole(case, rank))
        output = blank(case, case.part_shape(rank, rank))
        before = address(output, case)
        rows = [case.part_shape(rank, taker)[0] for taker in range(len(case.ranks))] if self.sized else None
        sizes = {} if rows is None else {"input_split_sizes": rows}
        returned = self.speak(context, case, group, output, whole, **sizes)
        kept = {} if 0 in case.part_shape(rank, rank) else {KEPT: address(output, case) == before}
        return Answer(returned, {"output": output, "input": whole}, kept)

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """The reduction of all ranks' parts for this one."""
        output = reference.reduce_scatter(case.parts(), case.reduce_op)[rank]
        kept = {} if 0 in case.part_shape(rank, rank) else {KEPT: True}
        return Answer(self.returned, {"output": output, "input": self._whole(case, rank)}, kept)

    def _whole(self, case: Any, rank: int) -> Any:
        if self.input == "concatenated":
            return joined_input(case, rank)
        return case.laid_out(np.stack(case.parts()[rank]).reshape(joined_shape(case, self.input)))


@dataclass(frozen=True, kw_only=True)
class GatherInto(Writes):
    """``gather_into_tensor(output_tensor, input_tensor)``: every rank gives an output, the root's is written."""

    collective: ClassVar[str] = "gather"
    result: ClassVar[str] = "output_tensor"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Gather into one blank tensor."""
        tensor, whole = own(context, case), blank(case, joined_shape(case))
        returned = self.speak(context, case, group, whole, tensor)
        return Answer(returned, {"output_tensor": whole, "input_tensor": tensor})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """All ranks' rows on the root; the others' output as it was."""
        gathered = reference.gather(case.arrays(), case.root)[rank]
        whole = blank_values(case, joined_shape(case)) if gathered is None else reference.concatenated(gathered)
        return Answer(self.returned, {"output_tensor": whole, "input_tensor": case.arrays()[rank]})


@dataclass(frozen=True, kw_only=True)
class ScatterInto(Writes):
    """``scatter_tensor(output_tensor, input_tensor)``: every rank gives an input, the root's is read."""

    collective: ClassVar[str] = "scatter"
    result: ClassVar[str] = "output_tensor"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Scatter into a blank tensor."""
        whole = made(case, joined_input(case, place_in(case, context)))
        output = blank(case, case.shape)
        returned = self.speak(context, case, group, output, whole)
        return Answer(returned, {"output_tensor": output, "input_tensor": whole})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """This rank's of the root's rows."""
        output = reference.scatter(case.parts(), case.root)[rank]
        return Answer(self.returned, {"output_tensor": output, "input_tensor": joined_input(case, rank)})


KEPT = "the output keeps its memory"


def joined_shape(case: Any, form: str = "concatenated") -> tuple[int, ...]:
    """The shape of one equal part per rank in a single array."""
    size, shape = len(case.ranks), case.shape
    if form == "flat":
        return (size * int(np.prod(shape)),)
    return (size, *shape) if form == "stacked" else (size * shape[0], *shape[1:])


def joined_input(case: Any, rank: int) -> Any:
    """This rank's parts end to end along axis 0, in the case's layout."""
    return case.laid_out(np.concatenate(case.parts()[rank]))
