"""What came out, against what the documents say comes out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from collshim.demo.example import Example, Row, Sheet
from collshim.errors import ArgumentValueError

DOCUMENTED = Path(__file__).parent / "expected"

Documented = dict[str, dict[str, Any]]
"""A framework's documented results by the name of the example: ``values``, ``back``, ``dtype`` and ``note``."""

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

    framework: str
    example: Example
    results: list[Judged]
    note: str

    @property
    def good(self) -> bool:
        """Whether every result is what it should be."""
        return not any(result.wanted for result in self.results)


def read_documented(sheets: Sequence[Sheet], folder: Path) -> list[Documented]:
    """The results that each sheet should have, from the folder's files.

    Raises:
        ArgumentValueError: a file is not there, or is no JSON.
    """
    return [_read(folder / f"{sheet.framework.lower()}.json") for sheet in sheets]


def _read(path: Path) -> Documented:
    try:
        found: Documented = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArgumentValueError(f"expected results: {path} cannot be read, should be JSON: {error}") from error
    return found


def judge(sheet: Sheet, observed: Observed, documented: Documented) -> list[Verdict]:
    """Compare each result with the documented one, in all of the sheet's worlds.

    Args:
        sheet: what ran.
        observed: what all ranks saw; those of the first world come first.
        documented: what they should have seen.
    """
    return [
        _judged(sheet.framework, example, documented.get(example.name, {}), list(_worlds(sheet, observed, index)))
        for index, example in enumerate(sheet.examples)
    ]


def _worlds(sheet: Sheet, observed: Observed, index: int) -> Iterator[list[Row]]:
    for first in range(0, len(observed), sheet.ranks):
        yield [row for rank in observed[first : first + sheet.ranks] for row in rank[index]]


def _judged(framework: str, example: Example, documented: dict[str, Any], worlds: list[list[Row]]) -> Verdict:
    unit = "replica" if example.replicas else "rank"
    results = [
        Judged(f"{unit} {number}", rows[0], _wanted(rows, documented, number))
        for number, rows in enumerate(zip(*worlds, strict=True))
    ]
    return Verdict(framework, example, results, documented.get("note", ""))


def _wanted(rows: Sequence[Row], documented: dict[str, Any], number: int) -> str:
    """What rank ``number`` of every world should have seen; ``""`` where each has."""
    values = documented.get("values", [])
    if number >= len(values):
        return "among the expected results, but is not"
    back = documented.get("back", "")
    back = back if isinstance(back, str) else back[number]
    dtype = documented.get("dtype", rows[0].dtype) if rows[0].dtype else ""
    if all((row.values, row.back, row.dtype) == (values[number], back, dtype) for row in rows):
        return ""
    return ", ".join(filter(None, [json.dumps(values[number]), back, dtype]))
