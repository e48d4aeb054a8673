"""What a call did to the memory of its arguments: facts that values do not show."""

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
"""By collective: of what comes from a rank itself, where it gives a list."""


class Before(NamedTuple):
    """What is looked at again after a call.

    Attributes:
        output: what the result is written to.
        entries: of the output where it is a list, as they are before the call.
        address: of the output where it is an array.
        own: the part that this rank has for itself, where it gives a list.
    """

    output: Tree
    entries: list[Any] | None
    address: int | None
    own: Any

    @classmethod
    def of(cls, case: Any, rank: int, output: Tree, given: Tree) -> Before:
        """Before the call of a rank of the group."""
        entries = list(output) if isinstance(output, list) else None
        place = None if output is None or entries is not None else address(output, case)
        own = given[rank] if case.collective in SHARES and isinstance(given, list) else None
        return cls(output, entries, place, own)

    def facts(self, case: Any, name: str, rank: int) -> dict[str, bool]:
        """After the call: what holds of the output, the parameter ``name``."""
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
