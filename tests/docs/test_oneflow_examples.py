"""The examples in OneFlow's style, run by `collshim run --as oneflow`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.robustness.scripts import run_command

pytestmark = pytest.mark.processes

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"

# Printed by OneFlow 0.9.0 for the same script on two CPU ranks.
LOSSES = """\
50/500 loss: 0.004111831542104483
100/500 loss: 0.00010519695933908224
150/500 loss: 2.6898414944298565e-06
200/500 loss: 6.904883775860071e-08
250/500 loss: 1.8917489796876907e-09
300/500 loss: 6.184563972055912e-11
350/500 loss: 6.184563972055912e-11
400/500 loss: 6.184563972055912e-11
450/500 loss: 6.184563972055912e-11
500/500 loss: 6.184563972055912e-11
weight: [2.0000033378601074, 2.99999737739563]
"""


def run_example(example: str, ranks: int) -> str:
    done = run_command(EXAMPLES, "run", "--no-prefix", "--as", "oneflow", "-n", ranks, example)
    assert done.code == 0, done.errors
    return done.out


def test_data_parallel_losses_match_oneflow_exactly() -> None:
    assert run_example("oneflow_data_parallel.py", 2) == LOSSES


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 4])
def test_tensor_parallel_gradients_match_the_whole_layers(ranks: int) -> None:
    parts = ("output", "gradient of the input", "gradient of the columns", "gradient of the rows")
    wanted = sorted(f"rank {rank}: {part} agrees" for rank in range(ranks) for part in parts)
    assert sorted(run_example("oneflow_tensor_parallel.py", ranks).splitlines()) == wanted
