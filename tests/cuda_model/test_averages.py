"""Averages over NCCL: if the average fits into the dtype, no intermediate sum overflows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from collshim import Communicator
from tests.cuda_model.hardware import require_model
from tests.cuda_model.ranks import Setting, among_gpus, device, values

require_model()

LARGE = {torch.float16: 60000.0, torch.bfloat16: 3e38, torch.float32: 3e38}
POSTS: dict[str, Callable[[Communicator, Any], Any]] = {
    "all_reduce": lambda comm, x: comm.all_reduce(x, "avg"),
    "reduce": lambda comm, x: comm.reduce(x, 1, "avg"),
    "reduce_scatter": lambda comm, x: comm.reduce_scatter(x.view(2, -1), "avg"),
    "all_reduce_coalesced": lambda comm, x: comm.all_reduce_coalesced([x, x], "avg"),
}


def averaged(comm: Communicator, name: str, dtype: torch.dtype) -> bool:
    x = torch.full((4,), LARGE[dtype], dtype=dtype, device=device())
    found = POSTS[name](comm, x).wait()
    first = found[0] if isinstance(found, list) else found
    return first is None or first.tolist() == x[: len(first)].tolist()


@pytest.mark.parametrize("checks", [False, True], ids=["unchecked", "checked"])
@pytest.mark.parametrize("dtype", list(LARGE), ids=str)
@pytest.mark.parametrize("name", POSTS)
def test_average_of_large_numbers_is_finite(name: str, dtype: torch.dtype, checks: bool) -> None:
    assert values(among_gpus(averaged, 2, name, dtype, setting=Setting(checks=checks))) == [True, True]


def of_integers(comm: Communicator) -> list[int]:
    x = torch.tensor([-3, 7, 4], device=device()) - comm.rank
    found: list[int] = comm.all_reduce(x, "avg").wait().tolist()
    return found


def test_integer_averages_truncate_towards_zero() -> None:
    assert values(among_gpus(of_integers, 2)) == [[-3, 6, 3]] * 2
