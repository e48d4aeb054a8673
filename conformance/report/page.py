"""The grid as one HTML file that needs no network: the files of ``browser/``, with the data of a run.

Each text is stored once and referred to by its number, because texts recur. The data is compressed, because a run has
tens of thousands of texts.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from collshim.conformance.report.causes import Cause, causes
from collshim.conformance.report.failures import laid_out, named, sentence
from collshim.conformance.report.results import CaseResult, Cell, Function, Grid
from collshim.conformance.report.terminal import counts, deviations

_PARTS = Path(__file__).parent / "browser"


def page(grid: Grid) -> str:
    """Return the text of the file."""
    text = (_PARTS / "page.html").read_text(encoding="utf-8")
    for name in ("page.css", "page.js"):
        text = text.replace(f"{{{{{name}}}}}", (_PARTS / name).read_text(encoding="utf-8"))
    payload = gzip.compress(json.dumps(data(grid), separators=(",", ":")).encode(), mtime=0)
    return text.replace("{{data}}", base64.b64encode(payload).decode())


def data(grid: Grid) -> dict[str, Any]:
    """Return the page's data; a case is a list of the attributes of its result, texts by number."""
    texts = _Texts()
    cells = [_cell(cell, texts) for cell in grid.cells.values()]
    return {
        **grid.about,
        "verdict": sentence(grid),
        "counts": counts(grid),
        "deviations": deviations(grid),
        "stale": grid.stale,
        "causes": [_cause(grid, cause) for cause in causes(grid)],
        "rows": grid.collectives,
        "columns": grid.columns,
        "cells": cells,
        "texts": list(texts),
    }


def _cause(grid: Grid, cause: Cause) -> dict[str, Any]:
    function, result, line = cause.failures[0]
    place = next(key for key, cell in grid.cells.items() if cell.functions.get(function.name) is function)
    counts = {"cases": len(cause.failures), "of": named(cause.functions), "only": cause.only}
    example = {"cell": list(place), "function": function.name, "case": result.case, "lines": list(laid_out(line))}
    return {"text": cause.text, **counts, "example": example}


class _Texts(dict[str, int]):
    """The numbers of texts, in the order of their first use."""

    def __missing__(self, text: str) -> int:
        self[text] = len(self)
        return self[text]

    def of(self, many: Iterable[str]) -> list[int]:
        """Return the number of each text."""
        return [self[text] for text in many]


def _cell(cell: Cell, texts: _Texts) -> dict[str, Any]:
    functions = [_function(function, texts) for function in cell.functions.values()]
    place = {"row": cell.collective, "framework": cell.framework, "transport": cell.transport}
    return {**place, "outcome": cell.outcome, "functions": functions}


def _function(function: Function, texts: _Texts) -> dict[str, Any]:
    cases, recorded = ([_case(result, texts) for result in results] for results in (function.cases, function.recorded))
    about = {"name": function.name, "outcome": function.outcome, "missing": function.missing}
    return {**about, "cases": cases, "recorded": recorded}


def _case(result: CaseResult, texts: _Texts) -> list[Any]:
    return [
        texts[result.case],
        result.outcome,
        texts[result.why],
        texts[result.call],
        texts.of(result.inputs),
        texts.of(result.answers),
        texts.of(result.recorded),
        texts.of(result.expected),
        texts[result.whose],
    ]
