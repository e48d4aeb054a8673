"""The result of each case, and of a cell of the grid: a collective in a dialect over a transport."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from collshim.conformance.cases import COLLECTIVES

# The outcomes of a case or a function, worst first; a cell has the worst of its outcomes.
FAIL, MISSING, DEVIATION, BEYOND, PASS = "fail", "missing", "deviation", "beyond", "pass"
OUTCOMES = {
    FAIL: "differs from the expected answer, and is not a declared deviation",
    MISSING: "the function is missing",
    DEVIATION: "a known deviation: differs, with the reason",
    BEYOND: "the real framework, or the recorded backend, failed; collshim answers or raises a proper error",
    PASS: "agrees",
}
OTHER = "groups and worlds"  # the row of recorded functions that are not collectives


@dataclass(frozen=True)
class CaseResult:
    """The result of one case.

    Attributes:
        case: the line that repeats the case, or a recording's name.
        outcome: one of ``OUTCOMES``.
        why: the differences, and the reason of a declared deviation.
        call: the text of a recorded call.
        inputs, answers: those of each rank, as text.
        recorded: the answer of each rank of the real framework.
        expected: the expected answer of each rank, if the case failed.
        whose: for a known deviation, whose it is.
    """

    case: str
    outcome: str
    why: str = ""
    call: str = ""
    inputs: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()
    expected: tuple[str, ...] = ()
    whose: str = ""


@dataclass
class Function:
    """One spelling of a collective, with the results of its generated and its recorded cases."""

    name: str
    missing: bool = False
    cases: list[CaseResult] = field(default_factory=list)
    recorded: list[CaseResult] = field(default_factory=list)

    @property
    def outcome(self) -> str:
        """The worst outcome of its cases."""
        return MISSING if self.missing else worst(result.outcome for result in (*self.cases, *self.recorded))


@dataclass
class Cell:
    """A collective in a dialect over a transport."""

    collective: str
    framework: str
    transport: str
    functions: dict[str, Function] = field(default_factory=dict)

    def function(self, name: str) -> Function:
        """Return the function of this name; add it if necessary."""
        return self.functions.setdefault(name, Function(name))

    @property
    def outcome(self) -> str:
        """Missing if every function is missing; otherwise the worst outcome of the other functions."""
        outcomes = [function.outcome for function in self.functions.values() if not function.missing]
        return worst(outcomes) if outcomes else MISSING

    @property
    def missing(self) -> int:
        """The number of missing functions."""
        return sum(function.missing for function in self.functions.values())

    def count(self, recorded: bool) -> Counter[str]:
        """Count its cases, or its recordings, by outcome."""
        functions = self.functions.values()
        return Counter(
            result.outcome for function in functions for result in (function.recorded if recorded else function.cases)
        )


@dataclass
class Grid:
    """All cells of a run, and the facts about the run.

    Attributes:
        about: versions, transports and other facts, as they are shown.
        stale: declared faults of a real framework that no case shows any more.
    """

    about: dict[str, Any]
    cells: dict[tuple[str, str, str], Cell] = field(default_factory=dict)
    stale: list[str] = field(default_factory=list)

    def cell(self, collective: str, framework: str, transport: str) -> Cell:
        """Return the cell at this place; add it if necessary."""
        key = (collective, framework, transport)
        return self.cells.setdefault(key, Cell(*key))

    @property
    def collectives(self) -> list[str]:
        """The rows, in the order of ``COLLECTIVES``."""
        names = {collective for collective, _, _ in self.cells}
        return [name for name in (*COLLECTIVES, OTHER) if name in names]

    @property
    def columns(self) -> list[tuple[str, str]]:
        """The pairs of dialect and transport, dialect by dialect."""
        order = list(dict.fromkeys(framework for _, framework, _ in self.cells))
        pairs = dict.fromkeys((framework, transport) for _, framework, transport in self.cells)
        return sorted(pairs, key=lambda pair: order.index(pair[0]))

    @property
    def functions(self) -> list[Function]:
        """The functions of all cells."""
        return [function for cell in self.cells.values() for function in cell.functions.values()]

    @property
    def asked(self) -> int:
        """The number of cases and recorded calls that were run."""
        return sum(len(function.cases) + len(function.recorded) for function in self.functions)

    @property
    def failed(self) -> list[tuple[Function, CaseResult]]:
        """The cases that differ without being declared deviations, each with its function."""
        return [
            (function, result)
            for function in self.functions
            for result in (*function.cases, *function.recorded)
            if result.outcome == FAIL
        ]

    def as_json(self) -> dict[str, Any]:
        """Return the grid, as ``--json`` writes it."""
        cells = [_cell(cell) for cell in self.cells.values()]
        return {**self.about, "outcomes": OUTCOMES, "stale": self.stale, "cells": cells}


def worst(outcomes: Iterable[str]) -> str:
    """Return the worst outcome; pass if there are none."""
    order: Sequence[str] = list(OUTCOMES)
    return min(outcomes, key=order.index, default=PASS)


def _cell(cell: Cell) -> dict[str, Any]:
    functions = [
        {
            "name": function.name,
            "outcome": function.outcome,
            "missing": function.missing,
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
