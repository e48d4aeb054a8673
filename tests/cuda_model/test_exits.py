"""A process whose last call on a GPU is aborted: how it ends, in interpreters of their own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cuda_model.hardware import require_model

require_model()

UNTOLD = 120
"""Python's exit status where an error comes as the interpreter ends."""


def ended(deed: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.cuda_model.a_process", deed]
    surroundings = {**os.environ, "PYTHONPATH": os.getcwd()}
    return subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=55, check=False)


@pytest.mark.parametrize("deed", ["reading", "posting", "over_torch"])
def test_a_failure_that_nobody_was_told_fails_the_process(deed: str) -> None:
    done = ended(deed)
    last = done.stderr.splitlines()[-1] if done.stderr else ""
    assert done.returncode == UNTOLD, done
    assert last.startswith("collshim.errors.PeerError: all_reduce(shape (4,), float32, op sum)")
    assert "rank 1 has left the world" in last


def test_a_program_that_was_told_ends_as_it_likes() -> None:
    done = ended("asking")
    assert done.returncode == 0, done
    assert "rank 1 has left the world" in done.stdout


def test_a_program_that_fails_otherwise_keeps_its_status() -> None:
    done = ended("failing")
    assert done.returncode != 0
    assert "ValueError: not of a rank" in done.stderr
    assert "collshim.errors.PeerError" in done.stderr
