"""The comparison of the results with the documents."""

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
    """One printed result: what a rank got, and whether it is correct.

    Attributes:
        who: the rank, or the replica.
        row: the result.
        wanted: the expected result if it differs; else ``""``.
    """

    who: str
    row: Row
    wanted: str


class Verdict(NamedTuple):
    """An example and its results.

    Attributes:
        note: the document's error, in words; else ``""``.
    """

    framework: str
    example: Example
    results: list[Judged]
    note: str

    @property
    def good(self) -> bool:
        """Whether every result is correct."""
        return not any(result.wanted for result in self.results)


def read_documented(sheets: Sequence[Sheet], folder: Path) -> list[Documented]:
    """Read the expected results of each sheet from the folder's files.

    Raises:
        ArgumentValueError: a file does not exist, or is not JSON.
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
        sheet: the sheet.
        observed: the results of all ranks; those of the first world come first.
        documented: the expected results.
    """
    return [
        _judge(sheet.framework, example, documented.get(example.name, {}), list(_worlds(sheet, observed, index)))
        for index, example in enumerate(sheet.examples)
    ]


def _worlds(sheet: Sheet, observed: Observed, index: int) -> Iterator[list[Row]]:
    for first in range(0, len(observed), sheet.ranks):
        yield [row for rank in observed[first : first + sheet.ranks] for row in rank[index]]


def _judge(framework: str, example: Example, documented: dict[str, Any], worlds: list[list[Row]]) -> Verdict:
    unit = "replica" if example.replicas else "rank"
    results = [
        Judged(f"{unit} {number}", rows[0], _expected(rows, documented, number))
        for number, rows in enumerate(zip(*worlds, strict=True))
    ]
    return Verdict(framework, example, results, documented.get("note", ""))


def _expected(rows: Sequence[Row], documented: dict[str, Any], number: int) -> str:
    """Return the expected result of rank ``number`` in every world; ``""`` if each world has it."""
    values = documented.get("values", [])
    if number >= len(values):
        return "among the expected results, but is not"
    back = documented.get("back", "")
    back = back if isinstance(back, str) else back[number]
    dtype = documented.get("dtype", rows[0].dtype) if rows[0].dtype else ""
    if all((row.values, row.back, row.dtype) == (values[number], back, dtype) for row in rows):
        return ""
    return ", ".join(filter(None, [json.dumps(values[number]), back, dtype]))
