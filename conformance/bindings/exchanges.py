"""Spellings of all_to_all between single arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from collshim.conformance.bindings.answers import Answer
from collshim.conformance.bindings.binding import blank, made, place_in
from collshim.conformance.bindings.joined_outputs import joined_input
from collshim.conformance.bindings.outputs import Writes
from collshim.conformance.bindings.rank_context import RankContext


@dataclass(frozen=True, kw_only=True)
class AllToAllSingle(Writes):
    """``all_to_all_single(output, input, output_split_sizes, input_split_sizes)``; equal parts: no sizes."""

    collective: ClassVar[str] = "all_to_all"
    result: ClassVar[str] = "output"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Exchange into one blank tensor."""
        rank = place_in(case, context)
        whole = made(case, joined_input(case, rank))
        output = blank(case, joined_output_shape(case, rank))
        returned = self.speak(context, case, group, output, whole, *split_sizes(case, rank))
        return Answer(returned, {"output": output, "input": whole})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Every rank's part for this one, end to end along axis 0."""
        whole = reference.concatenated(reference.all_to_all(case.parts())[rank])
        return Answer(self.returned, {"output": whole, "input": joined_input(case, rank)})


@dataclass(frozen=True, kw_only=True)
class AllToAllCounts(Writes):
    """``all_to_all_v_c(output, input, send_count_matrix)``: flat arrays, and every rank knows all counts."""

    collective: ClassVar[str] = "all_to_all"
    result: ClassVar[str] = "output"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Exchange into one blank flat tensor."""
        rank, ranks = place_in(case, context), range(len(case.ranks))
        counts = [[int(np.prod(case.part_shape(giver, taker))) for taker in ranks] for giver in ranks]
        whole = made(case, self._input(case, rank))
        output = blank(case, (sum(row[rank] for row in counts),))
        matrix = [count for row in counts for count in row]
        return Answer(self.speak(context, case, group, output, whole, matrix), {"output": output, "input": whole})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Every rank's part for this one, end to end."""
        parts = reference.all_to_all(case.parts())[rank]
        whole = np.concatenate([part.ravel() for part in parts])
        return Answer(self.returned, {"output": whole, "input": self._input(case, rank)})

    def _input(self, case: Any, rank: int) -> Any:
        return np.concatenate([part.ravel() for part in case.parts()[rank]])


def split_sizes(case: Any, rank: int) -> tuple[list[int], list[int]] | tuple[()]:
    """Lengths along axis 0 of what comes from, and what goes to, each rank; nothing where all are equal."""
    if case.lengths is None:
        return ()
    return [sent[rank] for sent in case.lengths], list(case.lengths[rank])


def joined_output_shape(case: Any, rank: int) -> tuple[int, ...]:
    """The shape of what comes from all ranks, end to end along axis 0."""
    shapes = [case.part_shape(giver, rank) for giver in range(len(case.ranks))]
    return (sum(shape[0] for shape in shapes), *shapes[0][1:])
