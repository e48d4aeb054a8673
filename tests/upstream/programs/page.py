"""The table of ``docs/torch-programs.md``, below its hand-written introduction."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from tests.environments import ROOT
from tests.upstream.programs.comparing import PASSES, reason
from tests.upstream.programs.listing import Program, programs, requirements

PAGE = ROOT / "docs" / "torch-programs.md"
_START = "<!-- written by python -m tests.upstream.programs --write -->"

Outcomes = dict[tuple[str, int], str]
"""The outcome of each program on each number of ranks."""


def table(outcomes: Outcomes) -> str:
    """Return the table, with a row for each program that has outcomes, and the counts."""
    shown = [program for program in programs() if any((program.name, ranks) in outcomes for ranks in program.ranks)]
    rows = ["| program | package | 2 ranks | 4 ranks | why |", "| --- | --- | --- | --- | --- |"]
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
    found = {ranks: outcomes.get((program.name, ranks), "-") for ranks in (2, 4)}
    reasons = {reason(program, ranks).why for ranks, kind in found.items() if kind not in (PASSES, "-")}
    package = f"{program.package} {requirements()[program.package]}"
    return f"| {program.name} | {package} | {found[2]} | {found[4]} | {'; '.join(sorted(reasons))} |"


def save(path: Path, outcomes: Outcomes) -> None:
    """Write outcomes to a file, so that a later run can complete them."""
    path.write_text(json.dumps([[*key, kind] for key, kind in outcomes.items()]), encoding="utf-8")


def load(path: Path) -> Outcomes:
    """Read the outcomes of an earlier run; none if there is no such file."""
    if not path.exists():
        return {}
    return {(name, ranks): kind for name, ranks, kind in json.loads(path.read_text(encoding="utf-8"))}
