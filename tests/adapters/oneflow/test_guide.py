"""OneFlow's guide to data-parallel training runs unmodified, and gives the numbers of the real one on one rank."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from collshim.standing_in import stand_in
from tests.adapters.oneflow.tutorials.recording import RECORDED, give

pytestmark = pytest.mark.processes

RUN = [sys.executable, "-m", "collshim", "run", "--as", "oneflow", "-n"]
LAUNCH = [sys.executable, "-m", "oneflow.distributed.launch", "--nproc_per_node", "2"]


def same_as_oneflow(command: list[str], folder: Path) -> bool:
    wanted, found = json.loads(RECORDED.read_text()), give(command, folder)
    return bool(found["losses"] == pytest.approx(wanted["losses"], rel=1e-4)) and bool(
        found["test"] == pytest.approx(wanted["test"], rel=2e-4)
    )


@pytest.mark.parametrize("ranks", [1, 2, pytest.param(4, marks=pytest.mark.slow)])
def test_any_number_of_ranks_gives_oneflows_numbers(ranks: int, tmp_path: Path) -> None:
    assert same_as_oneflow([*RUN, str(ranks)], tmp_path)


def test_guide_runs_under_oneflows_launcher(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in stand_in.environment(["oneflow"]).items():
        monkeypatch.setenv(name, value)
    assert same_as_oneflow(LAUNCH, tmp_path)
