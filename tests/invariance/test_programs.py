"""Correct programs raise no alarm; each fault is named with its parameters and its line."""

from __future__ import annotations

import linecache
import os
from functools import cache
from pathlib import Path

import pytest

from collshim.invariance.check import DIFFERENT, SAME, Report, check
from collshim.invariance.program import Program, Switches, load
from tests.invariance.conftest import HERE, named

# torch warns of what the programs call, as users' programs do.
pytestmark = [
    pytest.mark.threads,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]

CORRECT = sorted(path.stem for path in (HERE / "programs").glob("correct_*.py"))
FAULTS = sorted(path.stem for path in (HERE / "programs").glob("fault_*.py"))
THOROUGH = bool(os.environ.get("COLLSHIM_THOROUGH"))

# The line that is named is another of the mistake: that of the backward pass which nothing follows, or of its first
# wrong result.
NEAR = {"fault_bypassed_ddp", "fault_no_sync", "fault_to_local"}


@cache
def report_on(folder: Path, name: str) -> Report:
    """Check a program, once, on the ranks that it is for."""
    program, module = named(folder, name), load(str(folder / f"{name}.py"))
    mesh = getattr(module, "MESH", {})
    sizes = getattr(module, "RANKS", (1, 2, 4)) if THOROUGH else () if mesh else (2,)
    return check(program, sizes, mesh, Switches(kind="auto" if THOROUGH else "threads"))


def marked_line(path: Path) -> str:
    """Return the line with the mistake."""
    lines = path.read_text(encoding="utf-8").splitlines()
    (number,) = (number for number, line in enumerate(lines, 1) if line.endswith("# fault"))
    return f"{path}:{number}"


@pytest.mark.parametrize("name", CORRECT)
def test_correct_program_raises_no_alarm(programs: Path, name: str) -> None:
    report = report_on(programs, name)
    assert (report.code, report.verdict()) == (SAME, report.verdict())
    assert all(run.parameters for run in report.comparisons)


@pytest.mark.parametrize("name", FAULTS)
def test_fault_is_found(programs: Path, name: str) -> None:
    report = report_on(programs, name)
    assert report.code == DIFFERENT
    wrong = {finding.name for finding in report.comparisons[0].wrong}
    assert wrong >= set(load(str(programs / f"{name}.py")).PARAMETERS)


@pytest.mark.parametrize("name", FAULTS)
def test_line_of_a_fault_is_named(programs: Path, name: str) -> None:
    culprit, mark = report_on(programs, name).culprits[0], marked_line(programs / f"{name}.py")
    sites = [*culprit.sites, *culprit.also]
    if name in NEAR:
        path, _, line = mark.rpartition(":")
        own = [int(site.rpartition(":")[2]) for site in sites if site.startswith(path)]
        assert min(abs(int(line) - number) for number in own) <= 10
    else:
        assert mark in sites


@pytest.mark.parametrize("name", ["oneflow", "mindspore", "tensorflow", "megengine"])
def test_training_of_another_framework_raises_no_alarm(programs: Path, name: str) -> None:
    report = report_on(HERE / "frameworks", f"correct_{name}")
    assert (report.code, report.verdict()) == (SAME, report.verdict())


def test_wrong_factor_of_mindspore_is_found(programs: Path) -> None:
    report = report_on(HERE / "frameworks", "fault_mindspore")
    assert {finding.kind for finding in report.comparisons[0].parameters} == {"W"}
    path, _, line = report.culprits[0].site.rpartition(":")
    assert "reducer(gradients)" in linecache.getline(path, int(line))


@pytest.mark.processes
@pytest.mark.parametrize(("name", "code"), [("correct_dp_tp", SAME), ("fault_wrong_group", DIFFERENT)])
def test_ranks_that_are_processes_find_the_same(programs: Path, name: str, code: int) -> None:
    program = Program.found(f"{programs / name}.py:step")
    report = check(program, (), {"dp": 2, "tp": 2}, Switches(kind="processes"))
    assert report.code == code
