"""``collshim demo`` from its start to its last line."""

from __future__ import annotations

from pathlib import Path

import collshim
from collshim.demo import documents, tables
from collshim.demo.examples import SHEETS
from collshim.demo.verdict import DOCUMENTED, Verdict, judge
from rich.console import Console

RANKS = 4
DEADLINE = 60.0


def run(picture: Path, expected: Path | None) -> int:
    """Print everything; 0 where all is as documented and the curves are equal, else 1."""
    console = tables.console()
    verdicts = _documents(console, expected or DOCUMENTED)
    results = [result for verdict in verdicts for result in verdict.results]
    good = sum(not result.wanted for result in results)
    console.print(f"{good} of {len(results)} documented results reproduced")
    return int(good < len(results))


def _documents(console: Console, folder: Path) -> list[Verdict]:
    with console.status("four ranks run the documented examples"), collshim.options(timeout=DEADLINE):
        by_rank = collshim.launch(documents.observe_all, RANKS, ranks="processes", timeout=DEADLINE)
    verdicts = []
    for sheet, observed in zip(SHEETS, zip(*by_rank, strict=True), strict=True):
        verdicts.append(judge(sheet, observed, folder))
        console.print(tables.documented(sheet, verdicts[-1]))
    return [verdict for sheet in verdicts for verdict in sheet]
