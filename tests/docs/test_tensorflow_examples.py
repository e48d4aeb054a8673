"""The examples in TensorFlow's style, as `collshim run --as tensorflow` runs them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from tests.robustness.scripts import commanded

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


class Printed(NamedTuple):
    """The losses that a script prints, and the numbers in its last line."""

    losses: list[float]
    weights: list[float]


# What TensorFlow 2.21.0 prints of the same scripts with one replica on a CPU.
WANTED = {
    "tensorflow_data_parallel.py": Printed(
        [0.0194739, 0.0063416, 0.0030688], [1.9811580181121826, 2.9819700717926025, 0.6247885823249817]
    ),
    "tensorflow_contrastive.py": Printed(
        [1.8777652, 1.3628259, 1.0375268],
        [
            -0.2290161,
            0.7734064,
            0.0716335,
            0.3383874,
            0.0706096,
            -1.3924176,
            0.1998973,
            1.3550019,
            0.5189645,
            -0.2543178,
        ],
    ),
}


def printed(example: str, ranks: int) -> Printed:
    done = commanded(EXAMPLES, "run", "--no-prefix", "--as", "tensorflow", "-n", ranks, example)
    assert done.code == 0, done.errors
    *losses, last = done.out.splitlines()
    words = "".join(letter if letter in "0123456789.-+e, " else " " for letter in last.partition(":")[2]).split()
    numbers = [word.rstrip(",") for word in words if any(letter.isdigit() for letter in word)]
    return Printed([float(line.partition("loss: ")[2]) for line in losses], [float(number) for number in numbers])


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("example", WANTED)
def test_training_on_parts_equals_tensorflows_on_the_whole_batch(example: str, ranks: int) -> None:
    found = printed(example, ranks)
    assert found.losses == pytest.approx(WANTED[example].losses, abs=1e-5)
    assert found.weights == pytest.approx(WANTED[example].weights, abs=1e-5)
