"""``collshim conformance``: ask the cases, show the grid, write it to files."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import torch

from collshim import ArgumentError, ArgumentValueError, __version__
from collshim.conformance.effort import TRANSPORTS
from collshim.conformance.pool import StillRunningError
from collshim.conformance.recorder.dialects import dialect
from collshim.conformance.report import progress, readiness
from collshim.conformance.report.diff import compare
from collshim.conformance.report.failures import CASES
from collshim.conformance.report.listed import one_case, read
from collshim.conformance.report.page import page
from collshim.conformance.report.plan import Plan
from collshim.conformance.report.real import version
from collshim.conformance.report.results import Grid
from collshim.conformance.report.runner import fill
from collshim.conformance.report.saved import load
from collshim.conformance.report.terminal import show
from collshim.conformance.report.verdicts import Verdicts
from collshim.conformance.reporting.files import write, write_json
from collshim.conformance.subject import Subject, adapter, module, over, real
from collshim.frameworks import FRAMEWORKS

_INTERRUPTED = 130


def start(options: argparse.Namespace) -> int:
    """Run the cases, print the grid and write the files; return the exit code, see ``options.EPILOG``."""
    if options.diff is not None:
        return _compare(options)
    if options.read is not None:
        return _show_again(options)
    subject = _subject(options)
    for path in filter(None, (options.json, options.html)):
        _require_place(path)
    xfails, plan = read(options.xfails_file), _plan(options, subject)
    readiness.require(subject, plan.bindings(), allow_missing=options.allow_missing)
    grid = Grid(_about(options, plan))
    begin, interrupted, left = monotonic(), False, ""
    with progress.shown() as display, _quiet_ranks():
        try:
            fill(grid, plan, display, xfails)
        except KeyboardInterrupt:
            interrupted = True
        except StillRunningError as error:
            left = str(error)
    grid.about["seconds"] = round(monotonic() - begin, 1)
    show(grid, options.show)
    _write(grid, options)
    if left:
        print(f"collshim conformance: {left}; they end with this command", file=sys.stderr)
    if interrupted:
        print("interrupted: these are the results so far")
        return _INTERRUPTED
    if not grid.asked and not options.allow_missing:
        print("collshim conformance: no cases were run", file=sys.stderr)
        return 2
    return 1 if grid.failed or grid.stale or left else 0


def _compare(options: argparse.Namespace) -> int:
    """Compare two results; return 1 if the second is worse."""
    comparison = compare(*map(load, options.diff))
    print("\n".join(comparison.lines(all_cases=options.show == CASES)))
    if options.json:
        write_json(options.json, comparison.as_json())
    return int(comparison.is_worse)


def _show_again(options: argparse.Namespace) -> int:
    """Show the results of a file as after their run; return 1 if they failed."""
    grid = load(options.read)
    show(grid, options.show)
    _write(grid, options)
    return int(bool(grid.failed or grid.stale))


def _plan(options: argparse.Namespace, subject: Subject) -> Plan:
    return Plan(
        subject,
        _transports(options, subject),
        options.framework,
        options.collective,
        options.size,
        options.kinds,
        None if options.case is None else one_case(options.case, "--case"),
        read(options.skips_file),
    )


def _subject(options: argparse.Namespace) -> Subject:
    if options.backend is not None:
        return _backend(options)
    if options.registers is not None:
        raise ArgumentError(f"--import is {options.registers}, and there is no --backend for it to register")
    if not (options.real or options.adapter):
        return _adapters(options)
    if len(options.framework) != 1 or (options.real and options.adapter):
        count_text = " ".join(options.framework) or "none"
        raise ArgumentError(f"--real or --adapter needs exactly one --framework: {count_text} is given")
    framework = options.framework[0]
    if options.real:
        if not dialect(framework).runs_on_cpu:
            raise ArgumentError(f"--real: the collectives of {framework} itself do not run on a CPU")
        return replace(real(framework, _interpreter(options.python)), seconds=options.timeout)
    readiness.find_modules_here()
    return replace(module(options.adapter, framework), seconds=options.timeout)


def _backend(options: argparse.Namespace) -> Subject:
    """Return torch.distributed, or another module, over the backend."""
    if options.real or options.framework not in ([], ["torch"]):
        raise ArgumentError("--backend is torch's: it goes with --framework torch, or none, and not with --real")
    readiness.find_modules_here()
    return replace(over(options.backend, options.adapter, options.registers), seconds=options.timeout)


def _adapters(options: argparse.Namespace) -> Subject:
    """Return collshim's adapters, or one that another distribution adds."""
    others = [name for name in options.framework if name not in FRAMEWORKS]
    if not others:
        return Subject(seconds=options.timeout)
    if len(options.framework) > 1:
        names = " ".join(options.framework)
        raise ArgumentError(f"--framework is {names}, should be {others[0]} alone: collshim has no adapter of that")
    try:
        return adapter(others[0], options.timeout)
    except ImportError as error:
        raise ArgumentError(str(error)) from error


def _interpreter(path: str) -> str:
    """Make a path independent of the working folder; an environment's own is a link and must stay one."""
    return os.path.abspath(path) if os.sep in path else path


def _transports(options: argparse.Namespace, subject: Subject) -> Sequence[str]:
    transports = list(subject.transports)
    unavailable = [name for name in options.transport if name not in transports]
    if unavailable:
        raise ArgumentError(
            f"--transport is {' '.join(unavailable)}, should be {' or '.join(transports)}: a real framework's ranks"
        )
    return options.transport or (["processes"] if subject.foreign else TRANSPORTS)


def _about(options: argparse.Namespace, plan: Plan) -> dict[str, Any]:
    subject = plan.subject
    tested = f"collshim {__version__}"
    facts: dict[str, Any] = {}
    if subject.is_real:
        facts = {"framework": subject.framework, **version(subject.framework, subject.python)}
        tested = f"{subject.framework} {facts['version']} itself, Python {facts['python']}, NumPy {facts['numpy']}"
    elif subject.foreign:
        tested = f"{subject.module} in the place of {subject.framework}"
        tested += f", backend {subject.backend}" if subject.backend else ""
    date = datetime.now(timezone.utc).date().isoformat()
    versions = {"collshim": __version__, "torch": torch.__version__, "numpy": np.__version__}
    machine = f"Python {platform.python_version()}, torch {torch.__version__}, {platform.system()} {platform.machine()}"
    line = f"{tested}. Asked by {machine}, {date}." if subject.foreign else f"{tested}, {machine}, {date}."
    return {
        "line": line,
        "subject": Verdicts.of(subject).subject,
        "command": _command(options),
        "date": date,
        "asked by": versions,
        "real": facts,
        "transports": list(plan.transports),
    }


def _command(options: argparse.Namespace) -> str:
    """Return the command that asks the same subject again; ``--case`` can be appended."""
    given = {"--adapter": options.adapter, "--backend": options.backend, "--import": options.registers}
    own = [f"{name} {value}" for name, value in given.items() if value]
    own += [f"--real --python {options.python}"] if options.real else []
    return " ".join(["collshim conformance", *(f"--framework {name}" for name in options.framework), *own])


@contextmanager
def _quiet_ranks() -> Iterator[None]:
    """Silence warnings of ranks that are processes about deprecated upstream names; threads do not show them either."""
    old_value = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = "ignore"
    try:
        yield
    finally:
        del os.environ["PYTHONWARNINGS"]
        if old_value is not None:
            os.environ["PYTHONWARNINGS"] = old_value


def _require_place(path: Path) -> None:
    folder = path.absolute().parent
    if not folder.is_dir():
        raise ArgumentValueError(f"{path}: {folder} is not a folder")


def _write(grid: Grid, options: argparse.Namespace) -> None:
    if options.json:
        write_json(options.json, grid.as_json())
    if options.html:
        write(options.html, page(grid))
