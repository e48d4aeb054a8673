"""One collective in the five frameworks, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from collshim.conformance.conventions.facts import Facts, of_collective
from collshim.conformance.reporting.markdown import table
from collshim.frameworks import FRAMEWORKS

ORDER = (
    "each rank passes",
    "returns",
    "the result is",
    "its shape",
    "on other ranks",
    "memory",
    "gradient",
    "reductions",
    "unequal lengths",
    "axis",
    "the root is",
    "groups",
    "asynchronous",
    "error for a non-tensor",
)
NOTHING = "–"


@cache
def spellings(collective: str) -> tuple[Facts, ...]:
    """Return every spelling of a collective."""
    return tuple(of_collective(collective))


def first(collective: str) -> dict[str, Facts]:
    """Return the spelling that represents each framework: its first that is implemented, else its first of all."""
    found = {}
    for framework in FRAMEWORKS:
        own = sorted((one for one in spellings(collective) if one.framework == framework), key=lambda one: one.missing)
        if own:
            found[framework] = own[0]
    return found


def calls(collective: str) -> str:
    """Return the table of the frameworks' calls."""
    every = first(collective)
    return table(["", "call"], [[FRAMEWORKS[framework].title, _call_cell(one)] for framework, one in every.items()])


def compared(collective: str) -> str:
    """Return the table that compares the frameworks' calls: a column for each, a row for each subject."""
    every = list(first(collective).values())
    rows = [[f"*{subject}*", *(one.rows.get(subject) or NOTHING for one in every)] for subject in subjects(every)]
    recorded = ["*recorded calls*", *(one.evidence.short for one in every)]
    return table(["", *(FRAMEWORKS[one.framework].title for one in every)], [*rows, recorded])


def subjects(every: Sequence[Facts]) -> list[str]:
    """Return the subjects that have a text, in their order."""
    return [subject for subject in ORDER if any(one.rows.get(subject) for one in every)]


def _call_cell(one: Facts) -> str:
    return f"`{one.call}`" + (", which collshim does not have yet" if one.missing else "")
