"""The examples in TensorFlow's style, run by `collshim run --as tensorflow`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.robustness.scripts import run_command

pytestmark = pytest.mark.processes

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


class Printed(NamedTuple):
    """The losses that a script prints, with the text after them, and the numbers in its last line."""

    losses: list[float]
    weights: list[float]


# Printed by TensorFlow 2.21.0 for the same scripts with one replica on a CPU.
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
    "tensorflow_keras.py": Printed(
        [
            1.0072435,
            0.53125,
            0.8407007,
            0.525,
            0.5384648,
            0.75,
            0.4141628,
            0.875,
            0.2760141,
            0.92708,
            0.2308704,
            0.975,
        ],
        [2.2805605, 0.6652894, 7.2473783, 0.7118518, 2.4277766, 0.2876846],
    ),
}
KERAS = pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed: pip install collshim[keras]")
EXAMPLE = [
    "tensorflow_data_parallel.py",
    pytest.param("tensorflow_contrastive.py", marks=pytest.mark.slow),
    pytest.param("tensorflow_keras.py", marks=[pytest.mark.slow, KERAS]),
]
RANKS = [pytest.param(1, marks=pytest.mark.slow), 2, pytest.param(4, marks=pytest.mark.slow)]


def numbers(text: str) -> list[float]:
    words = "".join(letter if letter in "0123456789.-+e, " else " " for letter in text).split()
    return [float(word.rstrip(",")) for word in words if any(letter.isdigit() for letter in word)]


def run_example(example: str, ranks: int) -> Printed:
    done = run_command(EXAMPLES, "run", "--no-prefix", "--as", "tensorflow", "-n", ranks, example)
    assert done.code == 0, done.errors
    *losses, last = done.out.splitlines()
    return Printed(numbers(" ".join(line.partition("loss: ")[2] for line in losses)), numbers(last.partition(":")[2]))


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("example", EXAMPLE)
def test_distributed_training_matches_tensorflow(example: str, ranks: int) -> None:
    found = run_example(example, ranks)
    assert found.losses == pytest.approx(WANTED[example].losses, abs=1e-5)
    assert found.weights == pytest.approx(WANTED[example].weights, abs=1e-5)
