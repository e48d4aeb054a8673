"""The control-flow paths through some statements: which collectives a rank calls on each of them, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import libcst as cst

Kinds = tuple[str, ...]
"""The kinds of the collectives on a path."""

_Found = set[tuple[Kinds, bool]] | None
_MOST = 64


class Paths(NamedTuple):
    """Finds the paths through statements.

    Attributes:
        kinds_of: returns the kinds of the collectives that a statement or a condition calls.
        leaves: returns whether a statement leaves the block; the path ends there.
        fails: returns whether a statement raises an error or ends the process with one; the path does not count.
    """

    kinds_of: Callable[[cst.CSTNode], Sequence[str]]
    leaves: Callable[[cst.CSTNode], bool]
    fails: Callable[[cst.CSTNode], bool]

    def through(self, statements: Sequence[cst.CSTNode]) -> frozenset[Kinds] | None:
        """Return the collectives on each path; None if there are more than 64 paths."""
        found = self._through(statements)
        return None if found is None else frozenset(kinds for kinds, _ in found)

    def _through(self, statements: Sequence[cst.CSTNode]) -> _Found:
        """Return the same, and for each path whether it leaves the block."""
        paths: _Found = {((), False)}
        for statement in statements:
            more = self._of(statement)
            if more is None or paths is None:
                return None
            going = [kinds for kinds, has_left in paths if not has_left]
            paths = {path for path in paths if path[1]} | {(kinds + own, ends) for kinds in going for own, ends in more}
            if len(paths) > _MOST:
                return None
        return paths

    def _of(self, statement: cst.CSTNode) -> _Found:
        if isinstance(statement, cst.With):
            return self._through(statement.body.body)
        if not isinstance(statement, cst.If):
            return set() if self.fails(statement) else {(tuple(self.kinds_of(statement)), self.leaves(statement))}
        otherwise = statement.orelse
        rest = [otherwise] if isinstance(otherwise, cst.If) else otherwise.body.body if otherwise is not None else ()
        yes, no = self._through(statement.body.body), self._through(rest)
        asked = tuple(self.kinds_of(statement.test))
        return None if yes is None or no is None else {(asked + kinds, ends) for kinds, ends in yes | no}
