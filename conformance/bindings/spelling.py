"""A spelling: a function's parameters by their roles, and where its result is, in what form, on which ranks.

    Spelling(
        framework=FRAMEWORK,
        path="oneflow.comm.all_gather",
        collective="all_gather",
        takes={"tensor_list": "filled list", "tensor": "array"},
        result="tensor_list",
        memory="replaced",
        admits=Admits(dtypes=DTYPES, least_ndim=1, gradient=True),
    )

The arguments of its call and what every rank holds afterwards follow from this record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from collshim.conformance.bindings.answers import Answer, Tree, leaves, mapped, waited
from collshim.conformance.bindings.arguments import (
    ROLES,
    Arrangement,
    Asker,
    Invocation,
    arrange,
    blanks,
    is_array,
    role_of,
    values_by_name,
)
from collshim.conformance.bindings.binding import Binding, made, place_in
from collshim.conformance.bindings.differentiation import Rule, Weighing, expected_gradient, weights_of
from collshim.conformance.bindings.invalid import invalidate
from collshim.conformance.bindings.memory import FIRST, HOLDS, KEEPS, SHARES, Before
from collshim.conformance.bindings.rank_context import RankContext

IN_PLACE = ("all_reduce", "reduce", "broadcast")  # one array is both the input and the result, if it is written
PART_PER_RANK = ("scatter", "reduce_scatter", "all_to_all")
BUFFERS = ("buffer", "list of buffers")


def nothing(case: Any) -> Tree:
    """Return None, the result of the other ranks if only the root has a result."""
    return None


def _plain(asked: Invocation) -> Tree:
    return asked.function(*asked.positional, **asked.keywords)


@dataclass(frozen=True, kw_only=True)
class Spelling(Binding):
    """One function, or one way to call it, for a collective of arrays.

    Attributes:
        takes: the parameters that are passed, in order, with the role of each. "@" precedes the ranks that the role
            applies to: "root" or "first" of the group. Roles other than those of arrays are in ``arguments``. One of
            the arrays may hold the result, those of ``BUFFERS`` are scratch memory for the function, and one is the
            input.
        arrangement: the form of values with one part per rank.
        holders: the ranks that receive the result of a gather: the root, or all ranks that pass an output for it.
        only_root: the parameters that only the root passes; the others pass None.
        off_root: what is returned to the ranks without a result.
        memory: "replaced" if the output is rebound to new memory, or an output list has new entries.
        shares_own: whether this rank's part from itself shares memory with its input; NumPy's never does.
        loose: whether outputs may be non-contiguous.
        coalesced: whether every array is replaced by a list of two.
        wrap: turns the result into the returned value; by default that is the result itself, or None if it is written.
        speak: makes the call.
        peculiar: the result by case, rank and reference, if it differs from the reference's.
        rule: the rule of the gradient, for calls that admit one.
        elsewhere: the gradient of a rank whose input is ignored.

    Raises:
        ValueError: a role does not exist, or the result is not in a parameter of arrays.
    """

    takes: Mapping[str, str]
    arrangement: Arrangement = "list"
    holders: Literal["root", "all"] = "root"
    only_root: tuple[str, ...] = ()
    off_root: Callable[[Any], Tree] = nothing
    memory: Literal["kept", "replaced"] = "kept"
    shares_own: bool = False
    loose: bool = False
    coalesced: bool = False
    wrap: Callable[[Tree], Tree] | None = None
    speak: Callable[[Invocation], Tree] = _plain
    peculiar: Callable[[Any, int, Any], Tree] | None = None
    rule: Rule = "sum"
    elsewhere: Literal["none", "zeros"] = "none"

    def __post_init__(self) -> None:
        unknown = [role for role in self.takes.values() if role_of(role) not in ROLES]
        if unknown:
            raise ValueError(f"{self.name}: roles of parameters are {unknown}, should be of {sorted(ROLES)}")
        if self.is_written and self.result not in self.arrays:
            raise ValueError(f"{self.name}: result is {self.result!r}, should be returned, or of {self.arrays}")

    @property
    def arrays(self) -> tuple[str, ...]:
        """The parameters that hold arrays."""
        return tuple(name for name, role in self.takes.items() if is_array(role))

    @property
    def input(self) -> str:
        """The parameter that holds a rank's input."""
        inputs = [name for name in self.arrays if name != self.result and role_of(self.takes[name]) not in BUFFERS]
        return inputs[0] if inputs else self.result

    @property
    def is_written(self) -> bool:
        """Whether a parameter holds the result."""
        return self.result != "returned"

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Call the function, and wait for the handle that it may return."""
        asker = Asker(context, self.framework, case, place_in(case, context), group)
        held = self.arguments(asker)
        before = Before.of(case, asker.rank, held.get(self.result), held[self.input])
        asked = self.invocation(asker, held)

        def forward() -> Tree:
            returned = waited(self.speak(asked))
            return [returned, before.output] if self.is_written else returned

        found = self._differentiate(asker, held, forward) if case.gradient else forward()
        seen = self._select(held, before.entries)
        if case.gradient:
            seen[self._gradient] = mapped(held[self.input], lambda array: array.grad)
        return Answer(found[0] if self.is_written else found, seen, before.facts(case, self.result, asker.rank))

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Expect the result where this spelling leaves it, and the inputs unchanged."""
        value = self.value(case, rank, reference)
        held = {name: self.source(case, rank, name) for name in self.arrays}
        entries = held.get(self.result)
        facts = self._expected_facts(case, rank, entries, comes=value is not None)
        if value is not None and entries is not None:
            held[self.result], entries = value, entries if self.memory == "replaced" else value
        seen = self._select(held, entries)
        if case.gradient:
            seen[self._gradient] = expected_gradient(case, rank, self.rule, self.elsewhere, self.source)
        return Answer(self.returned(case, value), seen, facts)

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """Return the result of a rank of the group, or None if it has none."""
        if self.peculiar is not None:
            return self.peculiar(case, rank, reference)
        sent = replace(case, collective="all_gather") if self.holders == "all" else case
        found = reference.of(sent)[rank]
        return self._double(arrange(found, self.arrangement, case.axis) if isinstance(found, list) else found)

    def returned(self, case: Any, value: Tree) -> Tree:
        """Return the value that a call with this result returns."""
        if self.is_written:
            return None if self.wrap is None else self.wrap(value)
        result = self.off_root(case) if value is None else value
        return result if self.wrap is None else self.wrap(result)

    def source(self, case: Any, rank: int, name: str = "") -> Tree:
        """Return the NumPy values of a rank's argument for an array parameter, by default for the input."""
        name = name or self.input
        if name in self.only_root and rank != case.root:
            return None
        is_output = name == self.result and self.collective not in IN_PLACE
        if is_output or role_of(self.takes[name]) in BUFFERS:
            return self._double(self._blank(case, rank))
        if name == self.result and self.collective == "broadcast" and rank != case.root:
            return case.laid_out(blanks(self.collective, case, rank))
        return self._double(self._input_values(case, rank))

    def arguments(self, asker: Asker) -> dict[str, Any]:
        """Return the arguments by name, without omitted ones."""
        arrays = {name: self.source(asker.case, asker.rank, name) for name in self.arrays}
        made_arrays = {name: mapped(array, partial(made, asker.case)) for name, array in arrays.items()}
        others = {name: role for name, role in self.takes.items() if name not in arrays}
        return made_arrays | values_by_name(others, asker)

    def invocation(self, asker: Asker, arguments: Mapping[str, Any]) -> Invocation:
        """Make the call with these arguments; those after the last array are passed by name."""
        count = list(self.takes).index(self.arrays[-1]) + 1
        positional = tuple(arguments[name] for name in list(self.takes)[:count])
        named = {name: arguments[name] for name in list(self.takes)[count:] if name in arguments}
        function = asker.context.function(self.path)
        return Invocation(function, invalidate(asker.case.fault, positional), {**named, **self.options}, asker)

    @property
    def _gradient(self) -> str:
        return f"the gradient of {self.input if self.is_written else 'input'}"

    def _select(self, held: Mapping[str, Tree], entries: Tree) -> dict[str, Tree]:
        if not self.is_written:
            return {"input": held[self.input]}
        seen = {name: held[name] for name in self.arrays}
        return seen | ({FIRST.format(self.result): entries} if isinstance(entries, list) else {})

    def _expected_facts(self, case: Any, rank: int, output: Tree, *, comes: bool) -> dict[str, bool]:
        if not self.is_written or output is None:
            return {}
        if isinstance(output, list):
            facts = {HOLDS.format(self.result): not (self.memory == "replaced" and comes)}
        else:
            facts = (
                self._written_facts(case, rank) if comes else {}
            )  # the memory of the other ranks' arrays is unspecified
        shares = SHARES.get(self.collective, "")
        has_own_part = self.arrangement == "list" and 0 not in case.part_shape(rank, rank)
        if shares and has_own_part and (self.collective != "scatter" or rank == case.root):
            facts[shares] = self.shares_own and case.kind != "numpy"
        return facts

    def _written_facts(self, case: Any, rank: int) -> dict[str, bool]:
        """Return the fact about the one written array, unless it is the rank's own part, which ``SHARES`` covers."""
        is_replaced = self.memory == "replaced"
        is_nowhere = is_replaced and 0 in case.part_shape(rank, rank)
        if is_nowhere or (self.shares_own and rank == case.root):
            return {}
        return {KEEPS.format(self.result): not is_replaced or case.kind == "numpy"}

    def _blank(self, case: Any, rank: int) -> Tree:
        found = blanks(self.collective, case, rank)
        whole = arrange(found, self.arrangement, case.axis) if isinstance(found, list) else found
        return mapped(whole, case.laid_out) if self.loose else whole

    def _input_values(self, case: Any, rank: int) -> Tree:
        if self.collective not in PART_PER_RANK:
            return case.array_of(rank)
        parts = arrange(case.parts_of(rank), self.arrangement, case.split_axis)
        return parts if self.arrangement == "list" else case.laid_out(parts)

    def _double(self, tree: Tree) -> Tree:
        return mapped(tree, lambda array: [array, array.copy()]) if self.coalesced else tree

    def _differentiate(self, asker: Asker, held: Mapping[str, Tree], forward: Callable[[], Tree]) -> Tree:
        """Return the result of ``forward`` after a backward through it."""

        def weigh() -> Any:
            value = self.value(asker.case, asker.rank, Weighing())
            return weights_of([self.returned(asker.case, value), value if self.is_written else None])

        inputs = [leaf for leaf in leaves(held[self.input]) if leaf is not None]
        return self.framework.differentiate(asker.context, inputs, forward, weigh)
