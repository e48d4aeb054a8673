"""Programs that use CPU tensors alone, on a machine with GPUs: NCCL is there, and stays unused and unheard."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cuda_model.hardware import require_model

require_model()

BEGINS = """
import torch, collshim
comm = collshim.current().communicator
comm.all_reduce(torch.ones(3)).wait()
"""
ENDS = {
    "by itself": ("", 0),
    "after closing": ("collshim.close()", 0),
    "after a group": ("comm.subgroup([0, 1]).barrier().wait()", 0),
    "with a status": ("raise SystemExit(3)", 3),
}


@pytest.mark.parametrize(("end", "status"), ENDS.values(), ids=ENDS)
def test_nothing_is_said_of_nccl(end: str, status: int, tmp_path: Path) -> None:
    """torch warns on each rank whose number is a multiple of the number of GPUs, if its NCCL was not shut down."""
    script = tmp_path / "script.py"
    script.write_text(BEGINS + end, encoding="utf-8")
    surroundings = {**os.environ, "PYTHONPATH": os.getcwd(), "TORCH_CPP_LOG_LEVEL": "WARNING"}
    command = [sys.executable, "-m", "collshim", "run", "-n", "2", str(script)]
    done = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stdout) == (status, "")
    assert "ProcessGroupNCCL" not in done.stderr
    assert status or not done.stderr, done.stderr
