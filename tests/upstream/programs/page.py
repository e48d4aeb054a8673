"""The table of ``docs/torch-programs.md``, below its hand-written introduction."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.environments import ROOT
from tests.upstream.programs.comparing import PASSES, reason
from tests.upstream.programs.listing import COLUMNS, Program, programs, requirements

PAGE = ROOT / "docs" / "torch-programs.md"
_START = "<!-- written by python -m tests.upstream.programs --write -->"

Outcomes = dict[tuple[str, str], str]
"""The outcome of each program in each column, by its title."""


def table(outcomes: Outcomes) -> str:
    """Return the table, with a row for each program that has outcomes, and the counts."""
    shown = [program for program in programs() if any((program.name, column.title) in outcomes for column in COLUMNS)]
    titles = ["program", "package", *(column.title for column in COLUMNS), "why"]
    rows = [f"| {' | '.join(titles)} |", f"| {' | '.join(['---'] * len(titles))} |"]
    rows += [_row(program, outcomes) for program in shown]
    names = {program.name for program in shown}
    counts = Counter(kind for (name, _), kind in outcomes.items() if name in names)
    summary = "; ".join(f"{kind}: {count}" for kind, count in counts.most_common())
    return "\n".join([*rows, "", f"{sum(counts.values())} runs. {summary[:1].upper()}{summary[1:]}.", ""])


def write(outcomes: Outcomes) -> None:
    """Replace the table of the page."""
    introduction = PAGE.read_text(encoding="utf-8").partition(_START)[0]
    PAGE.write_text(f"{introduction}{_START}\n\n{table(outcomes)}", encoding="utf-8")


def _row(program: Program, outcomes: Outcomes) -> str:
    found = {column: outcomes.get((program.name, column.title), "-") for column in COLUMNS}
    reasons = {reason(program, column).why for column, kind in found.items() if kind not in (PASSES, "-")}
    package = f"{program.package} {requirements()[program.package]}"
    return f"| {program.name} | {package} | {' | '.join(found.values())} | {'; '.join(sorted(reasons))} |"


def save(path: Path, outcomes: Outcomes) -> None:
    """Write outcomes to a file, so that a later run can complete them."""
    path.write_text(json.dumps([[*key, kind] for key, kind in outcomes.items()]), encoding="utf-8")


def load(path: Path) -> Outcomes:
    """Read the outcomes of an earlier run; none if there is no such file."""
    if not path.exists():
        return {}
    return {(name, title): kind for name, title, kind in json.loads(path.read_text(encoding="utf-8"))}
