"""Waits on a busy machine: they sleep instead of giving way, which lasts until other programs have spent their time."""

from __future__ import annotations

from pathlib import Path

import pytest

from compile_core import FOLDER, ROOT
from tests.shared_memory.protocol.building import HERE, compiler, run

pytestmark = pytest.mark.processes


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program of ``crowd.c``."""
    target = tmp_path_factory.mktemp("crowd") / "crowd"
    words = ["-std=c11", "-O2", f"-I{ROOT / FOLDER}", str(HERE / "crowd.c"), "-o", str(target)]
    done = run([*compiler(), *words], 120)
    assert done.status == 0, done.output
    return target


def told(program: Path, microseconds: int) -> list[int]:
    done = run([str(program), str(microseconds)], 60)
    assert done.status == 0, done.output
    return [int(word) for word in done.output.split()]


def test_wait_gives_way_if_others_give_it_back_soon(program: Path) -> None:
    runs = [told(program, 0) for _ in range(20)]  # this machine may be busy during some of them
    assert [10, 10, 0, *[0] * 9] in runs


def test_wait_sleeps_after_it_gave_way_for_long(program: Path) -> None:
    first, second, crowded, *_ = told(program, 3000)
    assert (first, second, crowded) == (1, 0, 1)


def test_time_of_a_crowd_doubles_up_to_a_limit_and_begins_anew(program: Path) -> None:
    *_, last = spans = told(program, 3000)[3:]
    assert spans[:-1] == [200, 400, 800, 1600, 3200, 5000, 5000, 5000]
    assert last == 100
