"""Spellings that take or fill a list with one array per rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from collshim.conformance.bindings.answers import Answer, Tree
from collshim.conformance.bindings.binding import address, blank, own, own_parts, place_in
from collshim.conformance.bindings.differentiation import Weighing, expected_gradient, weights_of
from collshim.conformance.bindings.outputs import Writes, blanks_of
from collshim.conformance.bindings.rank_context import RankContext

Ranks = Literal["root", "everywhere"]


@dataclass(frozen=True, kw_only=True)
class AllGatherList(Writes):
    """``all_gather(tensor_list, tensor)``.

    Attributes:
        replaces: whether the list gets new tensors; else the tensors in it are written.
        loose: whether the tensors in the list need not be contiguous.
    """

    collective: ClassVar[str] = "all_gather"
    result: ClassVar[str] = "tensor_list"
    replaces: bool = False
    loose: bool = False

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Gather into a list of blank tensors."""
        tensor, size = own(context, case), len(case.ranks)
        given = [blank(case, case.part_shape(giver), loose=self.loose) for giver in range(size)]
        tensor_list = list(given)

        def gather() -> Tree:
            return self.speak(context, case, group, tensor_list, tensor), tensor_list

        returned = self._differentiated(context, case, tensor, gather) if case.gradient else gather()[0]
        arguments = {"tensor_list": tensor_list, "tensor": tensor, "the tensors first in tensor_list": given}
        if case.gradient:
            arguments["the gradient of tensor"] = tensor.grad
        return Answer(returned, arguments, {"tensor_list holds the tensors given": _same(tensor_list, given)})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Every rank's tensor, in rank order."""
        gathered = reference.all_gather(case.arrays())[rank]
        arguments = {"tensor_list": gathered, "tensor": case.arrays()[rank]}
        if case.gradient:
            arguments["the gradient of tensor"] = expected_gradient(case, rank, "sum", "none", _array_of)
        first = {"the tensors first in tensor_list": blanks_of(case, gathered) if self.replaces else gathered}
        return Answer(self.returned, arguments | first, {"tensor_list holds the tensors given": not self.replaces})

    def _differentiated(self, context: RankContext, case: Any, tensor: Any, gather: Callable[[], Tree]) -> Tree:
        """What the call returned, after a backward through the tensors in the list."""
        rank = place_in(case, context)
        weights = weights_of(Weighing().all_gather(case.arrays())[rank])
        return self.framework.differentiate(context, [tensor], gather, lambda: weights)[0]


@dataclass(frozen=True, kw_only=True)
class GatherList(Writes):
    """``gather(tensor, gather_list)``.

    Attributes:
        lists: which ranks give a list; the others give None.
        fills: which lists are filled.
        replaces: whether the list gets new tensors; else the tensors in it are written.
    """

    collective: ClassVar[str] = "gather"
    result: ClassVar[str] = "gather_list"
    lists: Ranks = "root"
    fills: Ranks = "root"
    replaces: bool = False

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Gather into a list of blank tensors."""
        tensor, listed = own(context, case), self.lists == "everywhere" or place_in(case, context) == case.root
        given = [blank(case, case.part_shape(giver)) for giver in range(len(case.ranks))] if listed else None
        gather_list = None if given is None else list(given)
        returned = self.speak(context, case, group, tensor, gather_list)
        arguments = {"gather_list": gather_list, "tensor": tensor}
        return Answer(returned, arguments, {} if given is None else {_KEPT: _same(gather_list, given)})

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Every rank's tensor, in rank order, in the lists that are filled."""
        there, arrays = rank == case.root, case.arrays()
        if self.lists == "root" and not there:
            return Answer(self.returned, {"gather_list": None, "tensor": arrays[rank]})
        filled = self.fills == "everywhere" or there
        gather_list = reference.gather(arrays, rank)[rank] if filled else blanks_of(case, arrays)
        facts = {_KEPT: not (self.replaces and filled)}
        return Answer(self.returned, {"gather_list": gather_list, "tensor": arrays[rank]}, facts)


@dataclass(frozen=True, kw_only=True)
class ScatterList(Writes):
    """``scatter(tensor, scatter_list)``.

    Attributes:
        lists: which ranks give a list; the others give None.
        aliases_own: whether the root's output shares memory with its part; arrays that cannot be given other
            memory (NumPy) are filled.
    """

    collective: ClassVar[str] = "scatter"
    result: ClassVar[str] = "tensor"
    lists: Ranks = "root"
    aliases_own: bool = False

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Scatter into a blank tensor."""
        rank = place_in(case, context)
        parts = own_parts(context, case) if self.lists == "everywhere" or rank == case.root else None
        own_part = parts[rank] if parts is not None else None
        tensor = blank(case, case.part_shape(case.root, rank))
        returned = self.speak(context, case, group, tensor, parts)
        shares = self._shares(case, rank)
        if shares:
            shares = {_SHARES_PART: address(tensor, case) == address(own_part, case)}
        return Answer(returned, {"tensor": tensor, "scatter_list": parts}, shares)

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """This rank's of the root's parts; the lists as they were."""
        parts = case.parts()
        listed = self.lists == "everywhere" or rank == case.root
        arguments = {
            "tensor": reference.scatter(parts, case.root)[rank],
            "scatter_list": parts[rank] if listed else None,
        }
        return Answer(self.returned, arguments, self._shares(case, rank))

    def _shares(self, case: Any, rank: int) -> dict[str, bool]:
        if rank != case.root or 0 in case.part_shape(rank, rank):
            return {}
        return {_SHARES_PART: self.aliases_own and case.kind != "numpy"}


@dataclass(frozen=True, kw_only=True)
class ReduceScatterList(Writes):
    """``reduce_scatter(output, input_list)``.

    Attributes:
        rebinds: whether the output is given other memory, so that what it was a view of keeps its values; arrays
            that cannot be (NumPy) are filled.
    """

    collective: ClassVar[str] = "reduce_scatter"
    result: ClassVar[str] = "output"
    rebinds: bool = False

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Reduce and scatter into a blank tensor."""
        rank, parts = place_in(case, context), own_parts(context, case)
        output = blank(case, case.part_shape(rank, rank))
        before = address(output, case)
        returned = self.speak(context, case, group, output, parts)
        kept = {} if 0 in case.part_shape(rank, rank) else {_KEPT_OUTPUT: address(output, case) == before}
        return Answer(returned, {"output": output, "input_list": parts}, kept)

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """The reduction of all ranks' parts for this one."""
        parts = case.parts()
        arguments = {"output": reference.reduce_scatter(parts, case.reduce_op)[rank], "input_list": parts[rank]}
        kept = not self.rebinds or case.kind == "numpy"
        return Answer(self.returned, arguments, {} if 0 in case.part_shape(rank, rank) else {_KEPT_OUTPUT: kept})


@dataclass(frozen=True, kw_only=True)
class AllToAllList(Writes):
    """``all_to_all(output_tensor_list, input_tensor_list)``.

    Attributes:
        aliases_own: whether the output that comes from this rank itself shares memory with its input; arrays
            that cannot be given other memory (NumPy) are filled.
    """

    collective: ClassVar[str] = "all_to_all"
    result: ClassVar[str] = "output_tensor_list"
    aliases_own: bool = False

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Exchange into a list of blank tensors."""
        rank = place_in(case, context)
        sent = own_parts(context, case)
        own_part = sent[rank]
        given = [blank(case, case.part_shape(giver, rank)) for giver in range(len(case.ranks))]
        received = list(given)
        returned = self.speak(context, case, group, received, sent)
        facts = {"output_tensor_list holds the tensors given": _same(received, given)}
        aliased = address(given[rank], case) == address(own_part, case)
        shares = {} if 0 in case.part_shape(rank, rank) else {_SHARES: aliased}
        return Answer(returned, {"output_tensor_list": received, "input_tensor_list": sent}, facts | shares)

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Every rank's part for this one, in rank order."""
        parts = case.parts()
        arguments: dict[str, Tree] = {
            "output_tensor_list": reference.all_to_all(parts)[rank],
            "input_tensor_list": parts[rank],
        }
        aliased = self.aliases_own and case.kind != "numpy"
        shares = {} if 0 in case.part_shape(rank, rank) else {_SHARES: aliased}
        return Answer(self.returned, arguments, {"output_tensor_list holds the tensors given": True} | shares)


_KEPT = "gather_list holds the tensors given"
_KEPT_OUTPUT = "output keeps its memory"
_SHARES = "this rank's own output shares memory with its input"
_SHARES_PART = "the root's output shares memory with its part"


def _array_of(case: Any, rank: int) -> Any:
    return case.arrays()[rank]


def _same(ours: Sequence[object] | None, theirs: Sequence[object]) -> bool:
    pairs = zip(ours or (), theirs, strict=False)
    return len(ours or ()) == len(theirs) and all(one is other for one, other in pairs)
