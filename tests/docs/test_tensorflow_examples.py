"""The example in TensorFlow's style, as `collshim run --as tensorflow` runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "tensorflow_data_parallel.py"

# What TensorFlow 2.21.0 prints of the same script with one replica on a CPU.
LOSSES = [0.0194739, 0.0063416, 0.0030688]
WEIGHT_AND_BIAS = [1.9811580181121826, 2.9819700717926025, 0.6247885823249817]


def printed(ranks: int) -> list[str]:
    options = ["--no-prefix", "--as", "tensorflow", "-n", str(ranks)]
    command = [sys.executable, "-m", "collshim", "run", *options, str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_training_on_parts_equals_tensorflows_on_the_whole_batch(ranks: int) -> None:
    *losses, last = printed(ranks)
    assert [float(line.partition("loss: ")[2]) for line in losses] == pytest.approx(LOSSES, abs=1e-5)
    numbers = last.replace("weight: [", "").replace("] bias: [", ", ").rstrip("]").split(", ")
    assert [float(number) for number in numbers] == pytest.approx(WEIGHT_AND_BIAS, abs=1e-5)
