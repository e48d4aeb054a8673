"""Every collective of tests/gpu between 2, 3 and 4 simulated GPUs matches CPU tensors bitwise."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from collshim import Communicator
from tests.cuda_model import model
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import Setting, among_gpus, among_threads, device, values
from tests.engine.worlds import attempt
from tests.gpu.scenarios import ALL, MOVES, Post, describe, given, results

require_model()

DTYPES = (torch.float32, torch.bfloat16, torch.int16, torch.complex64, torch.bool, torch.float8_e4m3fn)


def played(comm: Communicator, scenarios: dict[str, Post], dtype: torch.dtype, kind: str) -> dict[str, Any]:
    """Return the result or the error of each collective."""
    x, parts = given(dtype, comm, device() if kind == "cuda" else kind)
    found = {
        name: attempt(lambda scenario=scenario: describe(results(scenario(comm, x, parts)), kind))
        for name, scenario in scenarios.items()
    }
    return {name: outcome.text if outcome.raised else outcome.value for name, outcome in found.items()}


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: str(dtype).removeprefix("torch."))
@pytest.mark.parametrize("checks", [False, True], ids=["unchecked", "checked"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_results_match_cpu_tensors_bitwise(size: int, checks: bool, dtype: torch.dtype) -> None:
    scenarios = MOVES if dtype.itemsize == 1 and dtype.is_floating_point else ALL
    found = values(among_gpus(played, size, scenarios, dtype, "cuda", setting=Setting(checks=checks)))
    wanted = among_threads(played, size, scenarios, dtype, "cpu")
    different = {
        (name, rank): (found[rank][name], wanted[rank][name])
        for rank in range(size)
        for name in scenarios
        if found[rank][name] != wanted[rank][name]
    }
    assert different == {}


@pytest.mark.parametrize("seed", range(2, 22))
def test_no_race_in_any_order_of_streams(seed: int) -> None:
    with model.setting("seed", seed):
        for found in values(among_gpus(played, 3, ALL, torch.float32, "cuda")):
            assert set(found) == set(ALL)
