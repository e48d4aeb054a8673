"""``collshim demo`` from its start to its last line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

import collshim
from collshim.demo import documents, picture, tables
from collshim.demo.curves import Curves
from collshim.demo.examples import SHEETS
from collshim.demo.training import digits, single
from collshim.demo.training.dialects import train_all
from collshim.demo.verdict import DOCUMENTED, Verdict, judge

RANKS = 4
DEADLINE = 60.0
"""Seconds that either half may take."""


def run(path: Path, expected: Path | None) -> int:
    """Print the whole demo, and draw the curves into ``path``.

    Returns:
        0 where all results are as documented, or as ``expected`` has them, and the curves are equal; else 1.
    """
    console = tables.console()
    console.print(tables.opening(RANKS))
    verdicts = _documents(console, expected or DOCUMENTED)
    curves = _training(console)
    picture.draw(curves, path)
    console.print(tables.training(curves, path))
    good = tables.counts(verdicts, curves)
    console.print(good.text)
    return 0 if good.all else 1


def _documents(console: Console, folder: Path) -> list[Verdict]:
    with console.status(f"{RANKS} ranks run the documented examples"), collshim.options(timeout=DEADLINE):
        by_rank = collshim.launch(documents.observe_all, RANKS, ranks="processes", timeout=DEADLINE)
    verdicts = list[Verdict]()
    for sheet, observed in zip(SHEETS, zip(*by_rank, strict=True), strict=True):
        judged = judge(sheet, observed, folder)
        console.print(tables.documented(sheet, judged))
        verdicts += judged
    return verdicts


def _training(console: Console) -> Curves:
    with console.status(f"{RANKS} ranks train in five dialects"), collshim.options(timeout=DEADLINE):
        data = digits.load()
        by_rank = collshim.launch(train_all, RANKS, ranks="processes", args=(data,), timeout=DEADLINE)
        return Curves(by_rank, single.train(data))
