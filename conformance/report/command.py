"""``collshim conformance``: ask, show the grid, write it to files."""

from __future__ import annotations

import argparse
import json
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch

from collshim import ArgumentError, ArgumentValueError, __version__
from collshim.conformance.effort import TRANSPORTS
from collshim.conformance.report import progress
from collshim.conformance.report.page import page
from collshim.conformance.report.plan import Wanted
from collshim.conformance.report.real import version
from collshim.conformance.report.results import Grid
from collshim.conformance.report.runner import fill
from collshim.conformance.report.terminal import show
from collshim.conformance.subject import Subject, module, real


def start(chosen: argparse.Namespace) -> int:
    """Run what is asked, print the grid and write the files; 1 where something differs that is not declared to."""
    subject = _subject(chosen)
    for path in filter(None, (chosen.json, chosen.html)):
        _require_place(path)
    wanted = Wanted(subject, _transports(chosen, subject), chosen.framework, chosen.collective, chosen.size)
    grid = Grid(_about(chosen, wanted))
    began = monotonic()
    with progress.shown() as told, _quiet_ranks():
        fill(grid, wanted, told)
    grid.about["seconds"] = round(monotonic() - began, 1)
    show(grid)
    _write(grid, chosen)
    return 1 if grid.failed or grid.stale else 0


def _subject(chosen: argparse.Namespace) -> Subject:
    if not (chosen.real or chosen.adapter):
        return Subject()
    if len(chosen.framework) != 1 or (chosen.real and chosen.adapter):
        got = " ".join(chosen.framework) or "none"
        raise ArgumentError(f"--real and --adapter, one of them, need one --framework: {got} is given")
    framework = chosen.framework[0]
    return real(framework, _interpreter(chosen.python)) if chosen.real else module(chosen.adapter, framework)


def _interpreter(path: str) -> str:
    """A path that holds whatever the working folder; an environment's own is a link, and must stay one."""
    return os.path.abspath(path) if os.sep in path else path


def _transports(chosen: argparse.Namespace, subject: Subject) -> Sequence[str]:
    there = list(subject.transports)
    unfit = [one for one in chosen.transport if one not in there]
    if unfit:
        raise ArgumentError(
            f"--transport is {' '.join(unfit)}, should be {' or '.join(there)}: a real framework's ranks"
        )
    return chosen.transport or (["processes"] if subject.foreign else TRANSPORTS)


def _about(chosen: argparse.Namespace, wanted: Wanted) -> dict[str, Any]:
    subject = wanted.subject
    tested = f"collshim {__version__}"
    facts: dict[str, Any] = {}
    if subject.is_real:
        facts = {"framework": subject.framework, **version(subject.framework, subject.python)}
        tested = f"{subject.framework} {facts['version']} itself, Python {facts['python']}, NumPy {facts['numpy']}"
    elif subject.foreign:
        tested = f"{chosen.adapter} in the place of {subject.framework}"
    date = datetime.now(timezone.utc).date().isoformat()
    here = {"collshim": __version__, "torch": torch.__version__, "numpy": np.__version__}
    machine = f"Python {platform.python_version()}, torch {torch.__version__}, {platform.system()} {platform.machine()}"
    line = f"{tested}. Asked by {machine}, {date}." if subject.foreign else f"{tested}, {machine}, {date}."
    return {"line": line, "date": date, "asked by": here, "real": facts, "transports": list(wanted.transports)}


@contextmanager
def _quiet_ranks() -> Iterator[None]:
    """Let ranks that are processes not warn of what is deprecated upstream, as those that are threads do not."""
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore"
    try:
        yield
    finally:
        del os.environ["PYTHONWARNINGS"]
        if before is not None:
            os.environ["PYTHONWARNINGS"] = before


def _require_place(path: Path) -> None:
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ArgumentValueError(f"{path}: {folder} is no folder, should be one")


def _write(grid: Grid, chosen: argparse.Namespace) -> None:
    if chosen.json:
        chosen.json.write_text(json.dumps(grid.as_json(), separators=(",", ":")), encoding="utf-8")
    if chosen.html:
        chosen.html.write_text(page(grid), encoding="utf-8")
    for path in filter(None, (chosen.json, chosen.html)):
        print(f"written: {path}")
