"""``collshim conformance`` from its arguments to its exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import collshim.conformance
from collshim.__main__ import main
from collshim.conformance.effort import THOROUGH

pytestmark = pytest.mark.processes

ROOT = Path(collshim.conformance.__file__).resolve().parents[1]


def test_adapters_are_tested_and_recordings_replayed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--json", str(tmp_path / "run.json"), "--html", str(tmp_path / "run.html")]
    asked = ["--framework", "oneflow", "--collective", "barrier", "--transport", "threads"]
    assert main(["conformance", *asked, *files]) == 0
    out, progress = capsys.readouterr()
    cases = 3 if not THOROUGH else 5
    assert f"{cases} cases and 4 recorded calls:\n{cases + 4} agree, 0 failed, 0 functions missing" in out
    assert f"{cases + 4} of {cases + 4}  recordings of oneflow" in progress
    run = json.loads((tmp_path / "run.json").read_text())
    assert [(cell["collective"], cell["outcome"]) for cell in run["cells"]] == [("barrier", "pass")]
    assert "<title>collshim conformance</title>" in (tmp_path / "run.html").read_text()


def test_suite_passes_on_real_torch_with_declared_faults(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run.json"
    asked = ["--framework", "torch", "--collective", "reduce", "--size", "2", "--json", str(run)]
    assert main(["conformance", "--real", *asked]) == 0
    out = capsys.readouterr().out
    assert "0 failed" in out
    assert "known deviations" in out
    told = json.loads(run.read_text())
    assert told["real"]["framework"] == "torch"
    assert told["line"].startswith("torch ")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--real"], "--real or --adapter needs exactly one --framework: none is given"),
        (["--real", "--framework", "torch", "--python", "/nowhere/python"], "which does not run"),
        (["--real", "--framework", "megengine"], "the collectives of megengine itself do not run on a CPU"),
        (["--real", "--framework", "oneflow"], "should be an interpreter that has oneflow"),
        (["--real", "--framework", "torch", "--transport", "threads"], "--transport is threads, should be processes"),
        (["--html", "nowhere/run.html"], "nowhere is not a folder"),
    ],
)
def test_invalid_run_is_refused_first(arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["conformance", *arguments]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert told in error
