"""The scripts of docs/examples that launch their own ranks: for MegEngine and MindSpore."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("megengine_data_parallel.py", "the same on every rank"),
        pytest.param("megengine_tensor_parallel.py", "the gradients of the whole layer", marks=pytest.mark.slow),
        ("mindspore_data_parallel.py", "the loss on every rank"),
        ("mindspore_model_train.py", "the weights of one rank"),
        pytest.param("mindspore_tensor_parallel.py", "the gradients of the whole layers", marks=pytest.mark.slow),
    ],
)
def test_example_runs_and_checks_itself(name: str, told: str) -> None:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert told in done.stdout
