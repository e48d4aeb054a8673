"""What torch 2.14 and 2.15 add: gather_single, gather_into_tensor, set_timeout."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import torch

import collshim.torch.distributed as dist

if TYPE_CHECKING:
    from tests.adapters.torch.conftest import Refused, Run


def own() -> torch.Tensor:
    return torch.full((2, 3), float(dist.get_rank()))


@pytest.mark.parametrize("shape", [(3, 2, 3), (6, 3), (18,)])
@pytest.mark.parametrize("async_op", [False, True])
def test_the_destination_has_all_ranks_tensors_in_whatever_shape(
    run: Run, shape: tuple[int, ...], async_op: bool
) -> None:
    def rank() -> Any:
        whole = torch.zeros(shape) if dist.get_rank() == 1 else None
        work = dist.gather_single(own(), whole, group_dst=1, async_op=async_op)
        assert work is None or work.wait()
        return None if whole is None else whole.flatten()[::6].tolist()

    assert run(rank, 3) == [None, [0.0, 1.0, 2.0], None]


def test_its_other_name_gathers_on_global_rank_0_by_default(run: Run) -> None:
    def rank() -> Any:
        whole = torch.zeros(2, 2, 3)
        dist.gather_into_tensor(own(), whole)
        return whole[:, 0, 0].tolist()

    assert run(rank, 2) == [[0.0, 1.0], [0.0, 0.0]]


# What is wrong on the destination, and what is raised there before anything is sent.
WRONG: dict[str, tuple[type[Exception], Any, str]] = {
    "none": (ValueError, None, "gather_tensor must be specified on the destination rank"),
    "size": (RuntimeError, torch.zeros(5), "has 5 elements, should have 12"),
    "strides": (RuntimeError, torch.zeros(4, 6)[:, ::2], "is not contiguous"),
    "dtype": (ValueError, torch.zeros(12, dtype=torch.int64), "dtype"),
    "list": (TypeError, [torch.zeros(2, 3)], "gather_tensor"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_refused_on_the_destination(run: Run, refused: Refused, name: str) -> None:
    kind, whole, text = WRONG[name]

    def rank() -> Any:
        if dist.get_rank() == 0:
            with pytest.raises(kind, match=text):
                dist.gather_single(own(), whole)
        right = torch.zeros(12)
        dist.gather_single(own(), right if dist.get_rank() == 0 else None)
        return right.sum().item()

    assert run(rank, 2) == [6.0, 0.0]


def test_a_groups_timeout_holds_from_when_it_was_set(run: Run) -> None:
    def rank() -> Any:
        group = dist.new_group([0, 1])
        dist.set_timeout(timedelta(seconds=0.5), group)
        if dist.get_rank() == 0:
            began = time.monotonic()
            with pytest.raises(RuntimeError, match="Timed out waiting 500ms"):
                dist.all_reduce(torch.ones(1), group=group)
            return time.monotonic() - began < 20
        time.sleep(2)
        return True

    assert run(rank, 2) == [True, True]
