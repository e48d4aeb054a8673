"""What came out, against what the documents say comes out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from collshim.demo.example import Example, Row, Sheet

DOCUMENTED = Path(__file__).parent / "expected"

Observed = Sequence[Sequence[Sequence[Row]]]
"""By rank, example and row."""


class Judged(NamedTuple):
    """One printed result: what a rank saw, and whether that is what it should be.

    Attributes:
        who: the rank, or the replica.
        row: what it saw.
        wanted: what it should have seen, where that differs; else ``""``.
    """

    who: str
    row: Row
    wanted: str


class Verdict(NamedTuple):
    """An example and its results.

    Attributes:
        note: where the document errs, in words; else ``""``.
    """

    example: Example
    results: list[Judged]
    note: str


def expected(sheet: Sheet, folder: Path) -> dict[str, Any]:
    """The results that the documents of a framework state, by the name of the example."""
    found: dict[str, Any] = json.loads((folder / f"{sheet.framework.lower()}.json").read_text(encoding="utf-8"))
    return found


def judge(sheet: Sheet, observed: Observed, folder: Path) -> list[Verdict]:
    """Compare each result with the documented one, and with those of the sheet's other worlds.

    Args:
        sheet: what ran.
        observed: what all ranks saw, those of the first world first.
        folder: where the documented results are.
    """
    documented = expected(sheet, folder)
    return [
        _judged(example, documented.get(example.name, {}), list(_worlds(sheet, observed, index)))
        for index, example in enumerate(sheet.examples)
    ]


def _worlds(sheet: Sheet, observed: Observed, index: int) -> Iterator[list[Row]]:
    for first in range(0, len(observed), sheet.ranks):
        yield [row for rank in observed[first : first + sheet.ranks] for row in rank[index]]


def _judged(example: Example, documented: dict[str, Any], worlds: list[list[Row]]) -> Verdict:
    unit = "replica" if example.replicas else "rank"
    results = []
    for number, rows in enumerate(zip(*worlds, strict=True)):
        wanted = _difference(rows, documented, number)
        results.append(Judged(f"{unit} {number}", rows[0], wanted))
    return Verdict(example, results, documented.get("note", ""))


def _difference(rows: Sequence[Row], documented: dict[str, Any], number: int) -> str:
    """What should have been seen; ``""`` where every world has seen it."""
    values, back = documented.get("values", []), documented.get("back", "")
    if number >= len(values):
        return "something that is documented: there is no expected value"
    back = back if isinstance(back, str) else back[number]
    wanted = (values[number], back, documented.get("dtype", rows[0].dtype) if rows[0].dtype else "")
    if all((row.values, row.back, row.dtype) == wanted for row in rows):
        return ""
    return f"{json.dumps(values[number])}, {back}, {wanted[2]}"
