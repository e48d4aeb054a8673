"""What came of each case, and what that makes of a cell of the grid: a collective in a dialect over a transport."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from collshim.conformance.cases import COLLECTIVES

# What came of a case or a function, the worst first; a cell is what its worst is.
FAIL, MISSING, DEVIATION, BEYOND, PASS = "fail", "missing", "deviation", "beyond", "pass"
OUTCOMES = {
    FAIL: "differs from what is expected, and is not declared to",
    MISSING: "the function is not there",
    DEVIATION: "a known deviation: differs, with the reason",
    BEYOND: "the real framework, or the backend that recorded, failed; there is an orderly answer here",
    PASS: "agrees",
}
OTHER = "groups and worlds"  # the row of recorded functions that are no collectives


@dataclass(frozen=True)
class CaseResult:
    """What came of one case.

    Attributes:
        case: the line that it can be asked by again, or a recording's name.
        outcome: one of ``OUTCOMES``.
        why: what differs, and the reason of a declared deviation.
        call: the text of a recorded call.
        inputs, answers: of each rank, as text.
        recorded: what each rank of the real framework answered.
    """

    case: str
    outcome: str
    why: str = ""
    call: str = ""
    inputs: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()


@dataclass
class Function:
    """One spelling of a collective, and what came of its cases: those generated, and those recorded."""

    name: str
    missing: bool = False
    cases: list[CaseResult] = field(default_factory=list)
    recorded: list[CaseResult] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """The worst of its cases."""
        return MISSING if self.missing else worst(result.outcome for result in (*self.cases, *self.recorded))


@dataclass
class Cell:
    """A collective in a dialect over a transport."""

    collective: str
    framework: str
    transport: str
    functions: dict[str, Function] = field(default_factory=dict)

    def function(self, name: str) -> Function:
        """The function of this name."""
        return self.functions.setdefault(name, Function(name))

    @property
    def outcome(self) -> str:
        """Missing where every function is; else the worst of those that are there."""
        outcomes = [function.outcome for function in self.functions.values() if not function.missing]
        return worst(outcomes) if outcomes else MISSING

    @property
    def missing(self) -> int:
        """How many of its functions are missing."""
        return sum(function.missing for function in self.functions.values())

    def count(self, recorded: bool) -> Counter[str]:
        """How many of its cases, or of its recordings, came out how."""
        functions = self.functions.values()
        return Counter(
            result.outcome for function in functions for result in (function.recorded if recorded else function.cases)
        )


@dataclass
class Grid:
    """All cells of a run, and what it was a run of.

    Attributes:
        about: versions, transports and the like, as they are shown.
        stale: declared faults of a real framework that nothing shows any more.
    """

    about: dict[str, Any]
    cells: dict[tuple[str, str, str], Cell] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)

    def cell(self, collective: str, framework: str, transport: str) -> Cell:
        """The cell of this place."""
        key = (collective, framework, transport)
        return self.cells.setdefault(key, Cell(*key))

    @property
    def collectives(self) -> list[str]:
        """The rows, in the order of ``COLLECTIVES``."""
        names = {collective for collective, _, _ in self.cells}
        return [name for name in (*COLLECTIVES, OTHER) if name in names]

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Dialect and transport, dialect by dialect."""
        order = list(dict.fromkeys(framework for _, framework, _ in self.cells))
        pairs = dict.fromkeys((framework, transport) for _, framework, transport in self.cells)
        return sorted(pairs, key=lambda pair: order.index(pair[0]))

    @property
    def asked(self) -> int:
        """How many cases and recorded calls were asked."""
        functions = (function for cell in self.cells.values() for function in cell.functions.values())
        return sum(len(function.cases) + len(function.recorded) for function in functions)

    @property
    def failed(self) -> list[tuple[Function, CaseResult]]:
        """Every case that differs without being declared to, with its function."""
        functions = (function for cell in self.cells.values() for function in cell.functions.values())
        return [
            (function, result)
            for function in functions
            for result in (*function.cases, *function.recorded)
            if result.outcome == FAIL
        ]

    def as_json(self) -> dict[str, Any]:
        """Everything, as ``--json`` writes it."""
        cells = [_cell(cell) for cell in self.cells.values()]
        return {**self.about, "outcomes": OUTCOMES, "stale": self.stale, "cells": cells}


def worst(outcomes: Iterable[str]) -> str:
    """The worst of them; pass where there are none."""
    order: Sequence[str] = list(OUTCOMES)
    return min(outcomes, key=order.index, default=PASS)


def _cell(cell: Cell) -> dict[str, Any]:
    functions = [
        {
            "name": function.name,
            "outcome": function.outcome,
            "cases": [_case(result) for result in function.cases],
            "recorded": [_case(result) for result in function.recorded],
        }
        for function in cell.functions.values()
    ]
    place = {"collective": cell.collective, "framework": cell.framework, "transport": cell.transport}
    counts = {"cases": dict(cell.count(False)), "recorded": dict(cell.count(True)), "missing": cell.missing}
    return {**place, "outcome": cell.outcome, "count": counts, "functions": functions}


def _case(result: CaseResult) -> dict[str, Any]:
    return {name: value for name, value in asdict(result).items() if value}
