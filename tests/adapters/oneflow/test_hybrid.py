"""Data, tensor and pipeline parallelism together give the numbers of one rank; OneFlow 0.9.0 gave the same, to 1e-6."""

from __future__ import annotations

from typing import Any

import pytest

import collshim.oneflow as flow
from tests.adapters.oneflow import hybrid
from tests.adapters.oneflow.hybrid import train

pytestmark = pytest.mark.ranks(4)

LOSSES = [3.0639806, 2.9018035, 3.0351315, 2.7467990, 2.9007225]  # OneFlow's, on four ranks
CLIPPED = [3.0639806, 2.9018037, 3.0347793, 2.7496080, 2.9033151]
STAGES: dict[str, list[Any]] = {
    "data and tensor": [[[0, 1], [2, 3]]],
    "data and pipeline": [[[0], [1]], [[2], [3]]],
    "tensor and pipeline": [[[0, 1]], [[2, 3]]],
    "one rank": [[[2]]],
}


@pytest.mark.parametrize("what", STAGES)
def test_any_ranks_give_the_numbers_of_one(what: str) -> None:
    losses, model = train(STAGES[what])
    serial, whole = train([None])
    assert losses == serial
    assert losses == pytest.approx(LOSSES, rel=1e-6)
    for ours, theirs in zip(model.parameters(), whole.parameters(), strict=True):
        assert ours.numpy().tolist() == theirs.numpy().tolist()
        assert ours.grad.sbp == ours.sbp


def test_gradients_are_clipped_and_graphs_train() -> None:
    for stages in STAGES.values():
        assert train(stages, clipped=True)[0] == pytest.approx(CLIPPED, rel=1e-6)
    assert train(STAGES["data and tensor"], as_graph=True)[0] == train([None])[0]


def test_results_are_spread_as_in_oneflow() -> None:
    _, model = train(STAGES["data and tensor"])
    split, equal, total = flow.sbp.split, flow.sbp.broadcast, flow.sbp.partial_sum
    assert {name: tensor.sbp for name, tensor in model.seen.items()} == {
        "looked_up": (split(0), total),
        "heads": (split(0), split(1)),
        "found": (split(0), split(2)),
        "hidden": (split(0), split(2)),
        "lowered": (split(0), total),
        "scores": (split(0), split(2)),
        "loss": (total, equal),
    }
    block = model.blocks[0]
    assert block.up.to_local().shape == (hybrid.WIDTH, 16)
    assert block.up.grad.to_local().shape == (hybrid.WIDTH, 16)
    assert block.down.to_local().shape == (16, hybrid.WIDTH)
