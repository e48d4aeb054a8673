"""Drawn bad calls: plain values that describe the mistake of one rank."""

from __future__ import annotations

from typing import Any, NamedTuple

from hypothesis import strategies as st

from collshim.launching.kinds import RANK_KINDS
from tests.robustness.context import SIZE
from tests.robustness.faults import OTHER_SHAPE, Fault
from tests.robustness.roles import ROLES
from tests.robustness.spelling import Spelling, Surface
from tests.robustness.surfaces import SURFACES

TRANSPORTS = RANK_KINDS
VALUES = {"rows": st.integers(3, 9), "dtype": st.sampled_from(["float64", "int32"])}
"""The different values of a rank that disagrees; of roots and ops there are two."""


class Change(NamedTuple):
    """One bad argument: the index of the fault among those of its role, and its drawn value."""

    argument: str
    fault: int
    drawn: Any


class Bad(NamedTuple):
    """A call that is bad on one rank, ``culprit`` (its rank in the group).

    It has changed arguments, or is made in a state in which none is valid, or is valid by itself and differs from the
    other ranks' call: in a field of ``RankContext``, or, with ``instead``, altogether.
    """

    surface: str
    spelling: int
    group: str
    culprit: int
    nonce: int
    array_kind: str
    changes: tuple[Change, ...] = ()
    state: str = ""
    differs: tuple[str, Any] | None = None
    instead: int | None = None

    @property
    def spelled(self) -> Spelling:
        return SURFACES[self.surface].spellings[self.spelling]

    @property
    def alone(self) -> bool:
        """Whether the culprit can see by itself that the call is bad."""
        return self.differs is None and self.instead is None

    @property
    def respects(self) -> tuple[str, ...]:
        """The kinds of mistakes, one for each."""
        if not self.alone:
            return ("disagreement",)
        states = ("state",) if self.state else ()
        return states + tuple(self.fault(change).kind for change in self.changes)

    def fault(self, change: Change) -> Fault:
        return _faults(self.spelled, change.argument)[change.fault]

    def __str__(self) -> str:
        roles = [(change, self.spelled.roles[change.argument]) for change in self.changes]
        what = [f"{change.argument}, {role!r}, wrong in {self.fault(change).kind}" for change, role in roles]
        return f"{self.spelled.path} with {'; '.join(what)}: {self!r}"


def callable_badly(name: str, transport: str) -> list[int]:
    """Return the indices of a surface's functions that have bad calls."""
    surface = SURFACES[name]
    return [place for place, one in enumerate(surface.spellings) if _ways(surface, one, transport)]


def _ways(surface: Surface, spelling: Spelling, transport: str) -> list[str]:
    """Return how a call can be bad; frequent ways are repeated."""
    found = ["one"] * 6 if spelling.roles else []
    found += ["several"] * 2 if len(spelling.roles) > 1 else []
    found += ["state"] if _states(surface, spelling, transport) else []
    found += ["differs"] * 2 if spelling.differs else []
    found += ["instead"] if spelling.op else []
    return found


def _states(surface: Surface, spelling: Spelling, transport: str) -> tuple[str, ...]:
    if spelling.anywhere:
        return ()
    return surface.states + (surface.threads_states if transport == "threads" else ())


@st.composite
def bad_calls(draw: st.DrawFn, name: str, place: int, transport: str) -> Bad:
    """Draw bad calls of one function of a surface: three in four have one mistake."""
    surface = SURFACES[name]
    spelling = surface.spellings[place]
    bad = Bad(
        name,
        place,
        draw(st.sampled_from(["all", "turned"])) if spelling.groups else "all",
        draw(st.integers(0, SIZE - 1)),
        draw(st.integers(1, 50)),
        draw(st.sampled_from(surface.array_kinds)),
    )
    way = draw(st.sampled_from(_ways(surface, spelling, transport)))
    if way == "state":
        return bad._replace(state=draw(st.sampled_from(_states(surface, spelling, transport))))
    if way == "differs":
        return bad._replace(differs=draw(_differences(spelling)))
    if way == "instead":
        return bad._replace(instead=draw(st.sampled_from(_others(surface, spelling))))
    many = draw(st.integers(2, 3)) if way == "several" else 1
    changes = draw(_changes(spelling, min(many, len(spelling.roles))))
    return bad._replace(changes=changes, culprit=_culprit(spelling, changes, bad.culprit))


def _culprit(spelling: Spelling, changes: tuple[Change, ...], drawn: int) -> int:
    """Return a rank that validates these arguments."""
    judges = {spelling.roles[change.argument].partition("@")[2] for change in changes} - {""}
    return {"root": 1, "first": 0}[judges.pop()] if judges else drawn


@st.composite
def _changes(draw: st.DrawFn, spelling: Spelling, many: int) -> tuple[Change, ...]:
    """Draw faults of this many arguments; each kind of fault is equally likely."""
    left, found = set(spelling.roles), list[Change]()
    while len(found) < many:
        kinds = _kinds(spelling, left)
        argument, place = draw(st.sampled_from(kinds[draw(st.sampled_from(sorted(kinds)))]))
        fault = _faults(spelling, argument)[place]
        found.append(Change(argument, place, draw(_drawn(fault, found, spelling))))
        left.remove(argument)
    return tuple(found)


def _drawn(fault: Fault, others: list[Change], spelling: Spelling) -> st.SearchStrategy[Any]:
    """Return the values of a fault; two arguments of the same other shape might fit together."""
    taken = [change.drawn for change in others] if fault is OTHER_SHAPE else []
    return fault.draw.filter(lambda drawn: drawn not in taken and drawn not in spelling.takes)


def _kinds(spelling: Spelling, arguments: set[str]) -> dict[str, list[tuple[str, int]]]:
    """Return the faults of these arguments by kind: the argument and the index of the fault."""
    found: dict[str, list[tuple[str, int]]] = {}
    for argument in sorted(arguments):
        for place, fault in enumerate(_faults(spelling, argument)):
            found.setdefault(fault.kind, []).append((argument, place))
    return found


def _faults(spelling: Spelling, argument: str) -> tuple[Fault, ...]:
    return ROLES[spelling.roles[argument].partition("@")[0]]


def _differences(spelling: Spelling) -> st.SearchStrategy[tuple[str, Any]]:
    own = VALUES | {"root": st.sampled_from([0, 2]), "op": st.just("max")}
    return st.sampled_from(spelling.differs).flatmap(lambda field: st.tuples(st.just(field), own[field]))


def _others(surface: Surface, spelling: Spelling) -> list[int]:
    return [place for place, one in enumerate(surface.spellings) if one.op and one.op != spelling.op]
