"""MegEngine's tutorials of distributed training run unmodified, and give the numbers of the real one on one rank."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.megengine.tutorials.recording import NAMES, RECORDED, give

pytestmark = pytest.mark.processes

COLLSHIM = [sys.executable, "-m", "collshim", "run", "-n", "1", "--as", "megengine"]


@pytest.mark.parametrize("ranks", [1, 2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", NAMES)
def test_any_number_of_ranks_gives_megengines_numbers(name: str, ranks: int, tmp_path: Path) -> None:
    wanted: dict[str, Any] = json.loads(RECORDED.read_text())[name]
    found = give(COLLSHIM, name, ranks, tmp_path)
    assert set(found) == set(wanted)
    for key, numbers in wanted.items():
        assert found[key] == pytest.approx(numbers, rel=2e-5)
