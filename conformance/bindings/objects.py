"""Collectives of Python objects, in torch's spelling, which others follow; lists are filled in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from collshim.conformance.bindings.answers import Answer, Tree
from collshim.conformance.bindings.arguments import Asker, values_by_name
from collshim.conformance.bindings.binding import Binding, place_in, with_arrays
from collshim.conformance.bindings.messages import BLANK
from collshim.conformance.bindings.rank_context import RankContext


def _object(case: Any, rank: int) -> Tree:
    return case.objects()[rank]


def _blanks(case: Any, rank: int) -> Tree:
    return [BLANK] * len(case.ranks)


def _parts(case: Any, rank: int) -> Tree:
    return case.object_parts()[rank] if rank == case.root else None


def _two(case: Any, rank: int) -> Tree:
    return [case.objects()[rank], rank] if rank == case.root else [BLANK, BLANK]


_HELD: dict[str, tuple[Callable[[Any, int], Tree], Callable[[Any, int], Tree]]] = {
    "object": (_object, _object),
    "objects@root": (_parts, _parts),
    "list to fill": (_blanks, lambda case, rank: case.objects()),
    "list to fill@root": (_blanks, lambda case, rank: case.objects() if rank == case.root else _blanks(case, rank)),
    "list to fill, None elsewhere@root": (
        lambda case, rank: _blanks(case, rank) if rank == case.root else None,
        lambda case, rank: case.objects() if rank == case.root else None,
    ),
    "list to fill with two": (_two, lambda case, rank: _two(case, case.root)),
    "list to fill with one": (
        lambda case, rank: [BLANK, BLANK],
        lambda case, rank: [case.object_parts()[case.root][rank], BLANK],
    ),
}
"""A rank's argument before the call and after it, by role."""


@dataclass(frozen=True, kw_only=True)
class OfObjects(Binding):
    """A call that returns None and leaves its result in an argument.

    Attributes:
        takes: the parameters in order, with the role of each: one of ``_HELD``, or one that is not an array's.
    """

    takes: Mapping[str, str]

    def call(self, context: RankContext, case: Any, group: Any) -> Answer:
        """Call with the arguments for the roles."""
        rank = place_in(case, context)
        given = {name: _HELD[role][0](case, rank) for name, role in self.takes.items() if role in _HELD}
        held = {name: with_arrays(case, tree) for name, tree in given.items()}
        others = {name: role for name, role in self.takes.items() if name not in held}
        values = values_by_name(others, Asker(context, self.framework, case, rank, group))
        return Answer(context.function(self.path)(*held.values(), **values), held)

    def expected(self, case: Any, rank: int, reference: Any) -> Answer:
        """Expect the arguments as the roles define them."""
        return Answer(None, {name: _HELD[role][1](case, rank) for name, role in self.takes.items() if role in _HELD})
