"""The effects of a call on the memory of its arguments: facts that values do not show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.binding import address

KEEPS = "{} keeps its memory"
HOLDS = "{} holds the tensors given"
FIRST = "the tensors first in {}"
SHARES = {
    "scatter": "the root's output shares memory with its part",
    "all_to_all": "this rank's own output shares memory with its input",
}
"""By collective: the fact about a rank's part for itself, if its input is a list."""


class Before(NamedTuple):
    """The state before a call that is checked again after it.

    Attributes:
        output: the argument that the result is written to.
        entries: the entries of the output before the call, if it is a list.
        address: the address of the output, if it is an array.
        own: the part that this rank has for itself, if its input is a list.
    """

    output: Tree
    entries: list[Any] | None
    address: int | None
    own: Any

    @classmethod
    def of(cls, case: Any, rank: int, output: Tree, given: Tree) -> Before:
        """Record the state before the call of a rank of the group."""
        entries = list(output) if isinstance(output, list) else None
        place = None if output is None or entries is not None else address(output, case)
        own = given[rank] if case.collective in SHARES and isinstance(given, list) else None
        return cls(output, entries, place, own)

    def facts(self, case: Any, name: str, rank: int) -> dict[str, bool]:
        """Return the facts about the output, the parameter ``name``, after the call."""
        if self.output is None:
            return {}
        if self.entries is None:
            facts = {KEEPS.format(name): address(self.output, case) == self.address}
        else:
            facts = {HOLDS.format(name): _are_same(self.output, self.entries)}
        if self.own is None:
            return facts
        part = self.output if self.entries is None else self.entries[rank]
        return facts | {SHARES[case.collective]: address(part, case) == address(self.own, case)}


def _are_same(ours: Sequence[object], theirs: Sequence[object]) -> bool:
    return len(ours) == len(theirs) and all(one is other for one, other in zip(ours, theirs, strict=True))
