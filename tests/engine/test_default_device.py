"""torch's default device is for its user: the engine's own tensors stay on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tests.engine.worlds import attempt, on_ranks, plain, world


def with_a_default_device() -> list[Any]:
    """Call with "meta", which has no memory: tensors made there by mistake cannot be read."""
    comm, x = world(), torch.full((3,), world().rank + 1.0)
    counts = torch.full((2,), world().rank, dtype=torch.uint64)
    with torch.device("meta"):
        calls = [
            lambda: comm.all_reduce(x).wait(),
            lambda: comm.all_reduce(np.ones(2)).wait(),
            lambda: comm.all_reduce(counts, "avg").wait(),
            lambda: comm.all_gather_ragged(x).wait(),
            lambda: comm.all_gather_object(comm.rank).wait(),
        ]
        outcomes = [attempt(call) for call in calls]
    return [outcome.text or plain(outcome.value) for outcome in outcomes]


def test_default_device_changes_nothing(transport: str) -> None:
    vector, ones = ("torch.float32", (3,)), ("numpy.float64", (2,), [2.0, 2.0])
    wanted = [
        (*vector, [3.0] * 3),
        ones,
        ("torch.uint64", (2,), [0, 0]),
        [(*vector, [1.0] * 3), (*vector, [2.0] * 3)],
        [0, 1],
    ]
    assert on_ranks(with_a_default_device, 2, transport) == [wanted] * 2
