"""The whole of ``collshim demo``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

import collshim
from collshim.demo import picture, tables
from collshim.demo.curves import Curves
from collshim.demo.examples import SHEETS, observe_all
from collshim.demo.training import digits, single
from collshim.demo.training.dialects import train_all
from collshim.demo.verdict import DOCUMENTED, Documented, Verdict, judge, read_documented

RANKS = 4
DEADLINE = 60.0
"""Seconds that either half may take."""

OPTIONS = {"timeout": DEADLINE, "mindspore_gather": "concatenated"}
"""The options in force, whatever the environment says."""


def run(path: Path, expected: Path | None) -> int:
    """Print the whole demo, and draw the curves into ``path``.

    Returns:
        0 if all results match the documents, or the files in ``expected``, and all curves are equal; else 1.

    Raises:
        ArgumentValueError: a picture cannot be drawn at ``path``, or ``expected`` cannot be read.
        RankError: an example or a training failed.
    """
    picture.require_place(path)
    documented = read_documented(SHEETS, expected or DOCUMENTED)
    console = tables.console()
    console.print(tables.opening(RANKS))
    verdicts = _run_examples(console, documented)
    curves = _run_trainings(console)
    picture.draw(curves, path)
    console.print(tables.training(curves, path))
    return _conclude(console, verdicts, curves)


def _run_examples(console: Console, documented: Sequence[Documented]) -> list[Verdict]:
    with console.status(f"{RANKS} ranks run the examples"), collshim.options(**OPTIONS):
        by_rank = collshim.launch(observe_all, RANKS, ranks="processes", timeout=DEADLINE)
    verdicts = list[Verdict]()
    for index, sheet in enumerate(SHEETS):
        judged = judge(sheet, [sheets[index] for sheets in by_rank], documented[index])
        console.print(tables.documented(sheet, judged))
        verdicts += judged
    return verdicts


def _run_trainings(console: Console) -> Curves:
    with console.status(f"{RANKS} ranks train in five dialects"), collshim.options(**OPTIONS):
        data = digits.load()
        by_rank = collshim.launch(train_all, RANKS, ranks="processes", args=(data,), timeout=DEADLINE)
        return Curves(by_rank, single.train(data))


def _conclude(console: Console, verdicts: Sequence[Verdict], curves: Curves) -> int:
    for verdict in verdicts:
        if not verdict.good:
            console.print(f"differs: {verdict.framework}, {verdict.example.name}", style="red", markup=False)
    notes = sum(bool(verdict.note) for verdict in verdicts)
    console.print(f"{notes} notes above report errors of documents, or changes to their examples", style="dim")
    results = [result for verdict in verdicts for result in verdict.results]
    reproduced = sum(not result.wanted for result in results)
    equal, dialects = curves.count_equal(), len(curves.frameworks())
    count = f"{equal}" if equal == dialects else f"{equal} of {dialects}"
    far = "" if curves.close() else ", but too far from one process"
    good = reproduced == len(results) and equal == dialects and curves.close()
    text = f"{reproduced} of {len(results)} documented results reproduced; {count} training curves bitwise equal{far}"
    console.print(text, style="bold green" if good else "bold red")
    return 0 if good else 1
