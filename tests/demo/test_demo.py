"""``collshim demo``, complete, in a separate process."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from collshim.demo.examples import SHEETS
from collshim.demo.verdict import DOCUMENTED
from tests.demo.conftest import Demo

pytestmark = pytest.mark.processes

COUNTS = re.compile(r"(\d+) of (\d+) documented results reproduced; (.*) training curves bitwise equal")


@pytest.fixture(scope="module")
def picture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo") / "curves.png"


@pytest.fixture(scope="module")
def done(demo: Demo, picture: Path) -> subprocess.CompletedProcess[str]:
    return demo(picture)


def _counts(output: str) -> tuple[int, int, str]:
    found = COUNTS.fullmatch(output.splitlines()[-1])
    assert found, output
    return int(found[1]), int(found[2]), found[3]


def test_demo_ends_with_0_and_counts(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stdout + done.stderr
    reproduced, results, equal = _counts(done.stdout)
    assert reproduced == results > 0
    assert equal == "5"


def test_demo_prints_nothing_besides_its_output(done: subprocess.CompletedProcess[str]) -> None:
    assert done.stderr == ""


def test_demo_shows_every_example_and_its_results(done: subprocess.CompletedProcess[str]) -> None:
    for example in (example for sheet in SHEETS for example in sheet.examples):
        assert all(line.strip() in done.stdout for line in example.call.splitlines()), example.name
    for structure in ("None (tensor_out filled)", "(tensor, None)", "(tensor, CommHandle)", "PerReplica{0: t, 1: t}"):
        assert structure in done.stdout


def test_demo_points_out_errors_in_the_documents(done: subprocess.CompletedProcess[str]) -> None:
    assert "The manual prints a: [1, 2]" in done.stdout
    assert "The manual makes the output of dtype int64" in done.stdout


def test_demo_fits_100_columns(done: subprocess.CompletedProcess[str]) -> None:
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_demo_draws_the_curves(done: subprocess.CompletedProcess[str], picture: Path) -> None:
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in re.sub(r"\s", "", done.stdout)


@pytest.mark.slow
def test_different_result_is_named_with_exit_status_1(demo: Demo, tmp_path: Path) -> None:
    expected = shutil.copytree(DOCUMENTED, tmp_path / "expected")
    file = expected / "oneflow.json"
    results = json.loads(file.read_text(encoding="utf-8"))
    results["output in stack form"]["values"][1][0][0][0] = 99
    file.write_text(json.dumps(results), encoding="utf-8")

    done = demo(tmp_path / "curves.png", "--expected", str(expected))

    assert done.returncode == 1, done.stderr
    assert "should be [[[99, 2]" in done.stdout
    assert "differs: OneFlow, output in stack form" in done.stdout.splitlines()
    reproduced, results_in_all, equal = _counts(done.stdout)
    assert (results_in_all - reproduced, equal) == (1, "5")
