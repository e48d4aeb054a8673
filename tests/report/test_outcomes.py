"""The kept results of runs on the real frameworks, and the page about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from collshim.conformance.report.__main__ import main
from collshim.conformance.report.outcomes import keep, kept, page
from collshim.conformance.report.results import DEVIATION, FAIL, PASS, CaseResult, Grid
from collshim.conformance.report.upstream import FOLDER, declared

ROOT = Path(__file__).resolve().parents[2]
REAL = {"framework": "oneflow", "version": "0.9.0", "python": "3.10.1", "numpy": "1.23.5"}


@pytest.fixture
def run() -> Grid:
    grid = Grid({"real": REAL, "date": "2026-01-01", "asked by": {}, "seconds": 1.0})
    function = grid.cell("reduce", "oneflow", "processes").function("oneflow.comm.reduce")
    function.cases += [
        CaseResult("Case('reduce')", PASS),
        CaseResult("Case('reduce', root=9)", DEVIATION, "not refused\nrank 0: x"),
    ]
    return grid


def test_run_is_kept_as_counts_and_reasons(run: Grid) -> None:
    counts = {"functions": 1, "missing": [], "cases": {"pass": 1, "deviation": 1}, "unasked": 0}
    assert kept(run.as_json())["rows"] == {"reduce": {**counts, "faults": {"not refused": 1}}}


def test_run_on_an_adapter_is_not_kept(run: Grid) -> None:
    run.about["real"] = {}
    with pytest.raises(ValueError, match="should be of a real framework"):
        kept(run.as_json())


@pytest.mark.parametrize("text", [None, "no JSON", "{}"])
def test_invalid_run_file_is_refused_with_2(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(SystemExit) as ended:
        main([str(path)])
    assert ended.value.code == 2
    assert f"error: {path}: " in capsys.readouterr().err


def test_failed_run_is_not_kept(run: Grid) -> None:
    run.cell("reduce", "oneflow", "processes").function("oneflow.comm.reduce").cases.append(
        CaseResult("Case('reduce')", FAIL)
    )
    with pytest.raises(ValueError, match="failures in reduce"):
        kept(run.as_json())


def test_rows_not_tested_again_stay(run: Grid, tmp_path: Path) -> None:
    keep(run.as_json(), tmp_path)
    later = Grid(run.about)
    later.cell("barrier", "oneflow", "processes").function("oneflow.comm.barrier").cases += [
        CaseResult("Case('barrier')", PASS)
    ]
    path = keep(later.as_json(), tmp_path)
    assert list(json.loads(path.read_text())["rows"]) == ["reduce", "barrier"]


def test_page_shows_versions_counts_and_faults(run: Grid, tmp_path: Path) -> None:
    keep(run.as_json(), tmp_path)
    text = page(tmp_path)
    assert "| [oneflow](#oneflow) | 0.9.0 | 3.10.1, 1.23.5 | 1 | 2 | 1 | 1 (0) | 2026-01-01 |" in text
    assert "- 1: not refused" in text


def test_page_is_not_stale() -> None:
    text = (ROOT / "docs" / "real-frameworks.md").read_text(encoding="utf-8")
    assert text == page(), "write it with python docs/generate.py"


def test_four_frameworks_passed() -> None:
    runs = {path.stem: json.loads(path.read_text()) for path in FOLDER.glob("*.json")}
    assert sorted(runs) == ["mindspore", "oneflow", "tensorflow", "torch"]
    assert all("fail" not in row["cases"] for run in runs.values() for row in run["rows"].values())


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_every_observed_fault_is_still_declared(file: Path) -> None:
    reasons = {fault.reason for fault in declared(file.stem)}
    shown = {reason for row in json.loads(file.read_text())["rows"].values() for reason in row["faults"]}
    assert shown <= reasons
