"""How a process ends if its last call on a GPU is aborted, in separate interpreters."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cuda_model.hardware import require_model

require_model()

UNTOLD = 120
"""Python's exit status if an error occurs as the interpreter ends."""


def ended(deed: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.cuda_model.a_process", deed]
    surroundings = {**os.environ, "PYTHONPATH": os.getcwd(), **variables}
    return subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=200, check=False)


@pytest.mark.parametrize("deed", ["reading", "posting", "over_torch"])
def test_unreported_failure_fails_the_process(deed: str) -> None:
    done = ended(deed)
    told = [line for line in done.stderr.splitlines() if line.startswith("collshim.errors.PeerError: all_reduce(")]
    assert done.returncode == UNTOLD, done
    assert len(told) == 1, done
    assert "rank 1 has left the world" in told[0]


def test_program_told_of_a_failure_keeps_its_status() -> None:
    done = ended("asking")
    assert done.returncode == 0, done
    assert "rank 1 has left the world" in done.stdout


def test_other_failure_keeps_its_exit_status() -> None:
    done = ended("failing")
    assert done.returncode != 0
    assert "ValueError: not of a rank" in done.stderr
    assert "collshim.errors.PeerError" in done.stderr


def test_ctrl_c_interrupts_a_wait_for_data() -> None:
    done = ended("standing", TORCH_NCCL_BLOCKING_WAIT="1")
    assert done.stdout.splitlines()[-1:] == ["interrupted True"], done
