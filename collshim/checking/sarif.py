"""A report in SARIF 2.1.0, which code hosts show next to the lines of a change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from collshim import __version__
from collshim.checking.mistakes import RULES
from collshim.checking.report import Report
from collshim.checking.text import short

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_NAMES = {
    "missing-name": "The adapter lacks a name of the framework.",
    "different-name": "The adapter's name behaves differently from the framework's.",
    "unreadable-file": "A file is not valid Python.",
}


def as_sarif(report: Report) -> str:
    """Return a report as SARIF: mistakes and missing names are errors, different names are notes."""
    rules = {**RULES, **_NAMES}
    driver = {
        "name": "collshim check",
        "version": __version__,
        "rules": [{"id": rule, "shortDescription": {"text": text}} for rule, text in rules.items()],
    }
    run = {"tool": {"driver": driver}, "results": _results(report), "columnKind": "unicodeCodePoints"}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _results(report: Report) -> list[dict[str, Any]]:
    found = [
        _result(one.rule, "error", f"{one.text}. Fix: {one.fix}.", one.path, one.line, one.column)
        for one in report.mistakes
    ]
    found += [_result("unreadable-file", "error", one.reason, one.path, one.line) for one in report.unreadable]
    for use in report.uses:
        if use.standing != "supported":
            level = "error" if use.standing == "missing" else "note"
            text = f"{use.name}: {use.note}"
            found.append(_result(f"{use.standing}-name", level, text, use.path, use.line, use.column))
    return found


def _result(rule: str, level: str, text: str, path: Path, line: int, column: int = 1) -> dict[str, Any]:
    place = {
        "artifactLocation": {"uri": Path(short(path)).as_posix()},
        "region": {"startLine": max(line, 1), "startColumn": column},
    }
    return {
        "ruleId": rule,
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": place}],
    }
