"""Calls of larger data are right, and fail as usual, if the system forbids ranks to read each other's memory."""

from __future__ import annotations

import platform
import sys
from pathlib import Path

import pytest

from collshim.transports.shared_memory import core
from tests.shared_memory.protocol.building import run
from tests.shared_memory.without_reads import NUMBERS

ROOT = Path(__file__).parents[2]
SELECTED = " and ".join(
    f"not {name}"
    for name in (
        "cannot_be_read",
        "test_broadcasts",
        "are_repeated_whole",
        "every_form_is_repeated",
        "test_call_counts",
    )
)
"""Selects all tests, except those of reads, and of how few Python calls a call takes with them."""

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(core.Ring is None, reason=f"shared memory is not used here: {core.description()}"),
    pytest.mark.skipif(platform.machine() not in NUMBERS, reason="the numbers of the system calls are not known"),
]


def passes(seconds: float, *words: str) -> None:
    """Run pytest with these words, without reads; fail with its output if it fails."""
    done = run([sys.executable, "-m", "tests.shared_memory.without_reads", "-q", "-k", SELECTED, *words], seconds, ROOT)
    assert done.status == 0, done.output
    assert " passed" in done.output


@pytest.mark.timeout(400)
def test_larger_calls_are_right_without_reads() -> None:
    passes(380, "tests/engine/test_larger.py")


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("folder", ["tests/engine", "tests/shared_memory", "tests/robustness", "collshim/conformance"])
def test_all_tests_pass_without_reads(folder: str) -> None:
    passes(2900, "-m", "processes and not slow", f"--ignore={__file__}", folder)
