"""Spellings that return what they made: collectives with a root, and those that give each rank one part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from collshim.conformance.bindings.answers import Tree
from collshim.conformance.bindings.binding import made, own, place_in
from collshim.conformance.bindings.rank_context import RankContext
from collshim.conformance.bindings.results import OfJoined, OfOneArray, OfParts


def nothing(case: Any) -> Tree:
    """What the other ranks get where the root alone has a result: None."""
    return None


@dataclass(frozen=True, kw_only=True)
class Reduced(OfOneArray):
    """The reduction of all ranks' arrays, on the root.

    Attributes:
        others: what the other ranks get.
    """

    collective: ClassVar[str] = "reduce"
    others: Callable[[Any], Tree] = nothing

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """One array on the root."""
        found = reference.reduce(case.arrays(), case.root, case.reduce_op)[rank]
        return self.others(case) if found is None else found


@dataclass(frozen=True, kw_only=True)
class Broadcasted(OfOneArray):
    """The root's array.

    Attributes:
        withheld: whether the other ranks give None.
    """

    collective: ClassVar[str] = "broadcast"
    withheld: bool = False

    def given(self, context: RankContext, case: Any) -> Tree:
        """This rank's array, of which only the root's is read."""
        return None if self._withheld(case, place_in(case, context)) else own(context, case)

    def source(self, case: Any, rank: int) -> Tree:
        """The rank's array."""
        return None if self._withheld(case, rank) else case.arrays()[rank]

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """One array."""
        return reference.broadcast(case.arrays(), case.root)[rank]

    def _withheld(self, case: Any, rank: int) -> bool:
        return self.withheld and rank != case.root


@dataclass(frozen=True, kw_only=True)
class GatheredJoined(OfOneArray):
    """All ranks' arrays end to end along ``axis``, on the root.

    Attributes:
        others: what the other ranks get.
    """

    collective: ClassVar[str] = "gather"
    others: Callable[[Any], Tree] = nothing

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """One array on the root."""
        found = reference.gather(case.arrays(), case.root)[rank]
        return self.others(case) if found is None else reference.concatenated(found, case.axis)


@dataclass(frozen=True, kw_only=True)
class GatheredParts(OfOneArray):
    """All ranks' arrays, one by one, on the root; zeros on the others."""

    collective: ClassVar[str] = "gather"

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """A list; a spelling that returns a tuple wraps it."""
        found = reference.gather(case.arrays(), case.root)[rank]
        return [np.zeros_like(array) for array in case.arrays()] if found is None else found


@dataclass(frozen=True, kw_only=True)
class ScatteredJoined(OfJoined):
    """This rank's of the pieces of the root's array, cut along ``split_axis``.

    Attributes:
        withheld: whether the other ranks give None.
    """

    collective: ClassVar[str] = "scatter"
    withheld: bool = False

    def given(self, context: RankContext, case: Any) -> Tree:
        """This rank's array, of which only the root's is read."""
        source = self.source(case, place_in(case, context))
        return None if source is None else made(case, source)

    def source(self, case: Any, rank: int) -> Tree:
        """The rank's pieces, end to end along the axis that they are cut along."""
        if self.withheld and rank != case.root:
            return None
        return case.laid_out(np.concatenate(case.parts()[rank], axis=case.split_axis))

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """One piece."""
        return reference.scatter(case.parts(), case.root)[rank]


@dataclass(frozen=True, kw_only=True)
class ScatteredParts(OfParts):
    """This rank's of the root's arrays."""

    collective: ClassVar[str] = "scatter"

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """One array."""
        return reference.scatter(case.parts(), case.root)[rank]


@dataclass(frozen=True, kw_only=True)
class ReduceScattered(OfJoined):
    """The reduction of all ranks' pieces for this one, cut along ``split_axis``."""

    collective: ClassVar[str] = "reduce_scatter"

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """One piece."""
        return reference.reduce_scatter(case.parts(), case.reduce_op)[rank]


@dataclass(frozen=True, kw_only=True)
class ReduceScatteredParts(OfParts):
    """The reduction of all ranks' arrays for this one."""

    collective: ClassVar[str] = "reduce_scatter"

    def value(self, case: Any, rank: int, reference: Any) -> Tree:
        """One array."""
        return reference.reduce_scatter(case.parts(), case.reduce_op)[rank]
