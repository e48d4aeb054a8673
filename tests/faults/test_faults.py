"""Every program of ``conformance/faults`` is reported on both transports, and its corrected twin passes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from collshim.__main__ import main
from collshim.conformance.faults.page import INJECTED, merge
from collshim.conformance.faults.program import Program, programs
from collshim.conformance.faults.rank import OURS

CLASSES = {
    "DDP",
    "DTensor",
    "NaN in a sum",
    "dead rank",
    "different op",
    "dtype",
    "fully_shard",
    "group",
    "late rank",
    "mismatched object collective",
    "missing rank",
    "order swapped",
    "recv buffer too small",
    "reduce op",
    "root",
    "send to a rank that does not exist",
    "shape",
    "split sizes",
    "use after destroy",
}
PROGRAMS = programs()
FAIR = [program for program in PROGRAMS if not program.limit]
WAITED = 500
"""Seconds for all programs, mostly spent waiting for a deadline; on a loaded machine too."""

Scores = dict[tuple[str, str], dict[str, Any]]

pytestmark = [pytest.mark.processes, pytest.mark.timeout(WAITED + 20)]


@pytest.fixture(scope="module")
def scores(tmp_path_factory: pytest.TempPathFactory) -> Scores:
    """Return the outcome of every program, in a separate process, as ``make faults`` runs them."""
    out = tmp_path_factory.mktemp("faults") / "scores.json"
    command = [sys.executable, "-m", "collshim", "faults", "--jobs", "8", "--json", str(out)]
    done = subprocess.run([*command, "--faces", *OURS], capture_output=True, text=True, timeout=WAITED)
    assert out.exists(), done.stdout + done.stderr
    return {(found["program"], found["face"]): found for found in json.loads(out.read_text(encoding="utf-8"))}


def _cases(chosen: list[Program]) -> list[Any]:
    return [
        pytest.param(program.name, face, id=f"{program.name}-{face}")
        for program in chosen
        for face in OURS
        if program.runs_on(face)
    ]


@pytest.mark.parametrize(("name", "face"), _cases(FAIR))
def test_every_rank_learns_who_and_where(scores: Scores, name: str, face: str) -> None:
    found = scores[name, face]
    assert (found["outcome"], found["named"], bool(found["line"])) == ("told", True, True), found


@pytest.mark.parametrize(("name", "face"), _cases(PROGRAMS))
def test_twin_passes(scores: Scores, name: str, face: str) -> None:
    assert scores[name, face]["twin"] == ""


def test_no_rank_is_killed_by_a_signal(scores: Scores) -> None:
    assert {key: found["outcome"] for key, found in scores.items() if found["killed"]} == {}


@pytest.mark.parametrize(("name", "face"), _cases([program for program in PROGRAMS if program.limit]))
def test_undetectable_fault_is_silent(scores: Scores, name: str, face: str) -> None:
    """If this fails the engine has learned to detect it: remove ``limit`` from the header."""
    assert scores[name, face]["outcome"] == "silent"


@pytest.mark.parametrize(("name", "face"), _cases([program for program in FAIR if program.fault == "dead rank"]))
def test_death_accuses_nobody_else(scores: Scores, name: str, face: str) -> None:
    program = next(program for program in FAIR if program.name == name)
    texts = scores[name, face]["texts"].values()
    assert texts
    assert all("2 of 3 ranks did not arrive" not in text for text in texts), program


def test_every_class_exists() -> None:
    assert {program.fault for program in FAIR} == CLASSES


def test_page_shows_every_program() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "faults.md").read_text(encoding="utf-8")
    missing = [program.name for program in PROGRAMS if f"| {program.name} |" not in page]
    assert missing == [], "write it with collshim faults --write docs/faults.md"


def test_rewritten_page_keeps_injected_section() -> None:
    before = f"old\n\n{INJECTED}\n\n| class |\n"
    assert merge("new\n", before) == f"new\n\n{INJECTED}\n\n| class |\n"
    assert merge("new\n", "old\n") == "new\n"


@pytest.mark.slow
def test_module_and_backend_are_scored_as_collshim(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["faults", "reduce_op_max", "--backend", "collshim"]) == 0
    assert "classes caught 1 of 1 by torch.distributed:collshim" in capsys.readouterr().out
    assert main(["faults", "reduce_op_max", "--adapter", "torch.distributed"]) == 1
    assert "missed: reduce_op_max, torch.distributed:gloo: silent" in capsys.readouterr().out


def test_module_that_cannot_start_exits_with_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (
        "from torch.distributed import *\n\ndef init_process_group(*args, **kwargs):\n    raise OSError('no fabric')\n"
    )
    (tmp_path / "without_fabric.py").write_text(text, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["faults", "reduce_op_max", "--adapter", "without_fabric"]) == 2
    assert "no program can be run: rank" in capsys.readouterr().err
