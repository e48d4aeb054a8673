"""Results that ``--json`` wrote, read again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from collshim import ArgumentValueError
from collshim.conformance.report.results import MISSING, OUTCOMES, CaseResult, Grid

_PARTS = ("cells", "stale", "outcomes")
_LISTS = ("inputs", "answers", "recorded", "expected")
_NAMES = {field.name for field in fields(CaseResult)}


def load(path: Path) -> Grid:
    """Return the results in the file.

    Raises:
        ArgumentValueError: the file cannot be read, or is not one that ``collshim conformance --json`` wrote.
    """
    try:
        return _grid(json.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise ArgumentValueError(f"{path}: {error.strerror or error}") from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ArgumentValueError(
            f"{path} is not a result, should be a file that `collshim conformance --json` wrote ({reason})"
        ) from error


def _grid(run: Mapping[str, Any]) -> Grid:
    grid = Grid({name: value for name, value in run.items() if name not in _PARTS}, stale=list(run["stale"]))
    for cell in run["cells"]:
        there = grid.cell(cell["collective"], cell["framework"], cell["transport"])
        for data in cell["functions"]:
            function = there.function(data["name"])
            function.missing = data.get("missing", data["outcome"] == MISSING)
            function.cases += map(_result, data["cases"])
            function.recorded += map(_result, data["recorded"])
    return grid


def _result(data: Mapping[str, Any]) -> CaseResult:
    if data["outcome"] not in OUTCOMES:
        raise ValueError(f"the outcome is {data['outcome']!r}, should be of {', '.join(OUTCOMES)}")
    known: dict[str, Any] = {name: value for name, value in data.items() if name in _NAMES}
    for name in set(_LISTS) & set(known):
        known[name] = tuple(known[name])
    return CaseResult(**known)
