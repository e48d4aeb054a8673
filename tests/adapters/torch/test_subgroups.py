"""Several groups at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
import torch

import collshim.torch.distributed as dist
from tests.adapters.conftest import Refused, Run, each_of


def test_world_is_split_into_pairs(run: Run) -> None:
    def rank() -> Any:
        mine, groups = dist.new_subgroups(2, group_desc="pairs")
        dist.all_reduce(tensor := torch.tensor(dist.get_rank()), group=mine)
        known = [None if group == -100 else dist.get_process_group_ranks(group) for group in groups]
        return tensor.item(), known, mine is not None and mine.group_desc

    first, second = (1, [[0, 1], None], "pairs"), (5, [None, [2, 3]], "pairs")
    assert run(rank, 4) == [first, first, second, second]


@each_of(4, gives=[([r], 2, 2) for r in range(4)])
def test_group_is_split_by_its_own_ranks() -> Any:
    half, _ = dist.new_subgroups_by_enumeration([[0, 2], [1, 3]])
    mine, groups = dist.new_subgroups(1, group=half)
    return dist.get_process_group_ranks(mine), len(groups), dist.get_world_size(half)


@each_of(3, gives=[(None, True), (0, False), (1, False)])
def test_rank_may_be_in_no_subgroup() -> Any:
    mine, groups = dist.new_subgroups_by_enumeration([[1, 2]])
    return None if mine is None else dist.get_rank(mine), groups == [-100]


def test_group_is_split_without_a_device(run: Run) -> None:
    def rank() -> Any:
        parent = dist.new_group([3, 2, 0], sort_ranks=False)
        if parent == -100:
            return None
        part = dist.split_group(parent, [[1, 0]], timeout=timedelta(seconds=5))  # ranks in the parent: 2 and 3
        if part is None:
            return "in no part"
        dist.all_gather(found := [torch.zeros(1) for _ in range(2)], torch.ones(1) * dist.get_rank(), part)
        return dist.get_process_group_ranks(part), [int(each) for each in found], dist.get_backend(part)

    both = [3, 2], [3, 2], "gloo"
    assert run(rank, 4) == ["in no part", None, both, both]


def test_invalid_subgroups_are_refused_before_creation(run: Run, refused: Refused) -> None:
    by_ranks, split = dist.new_subgroups_by_enumeration, dist.split_group

    def rank() -> int:
        refused(ValueError, lambda: dist.new_subgroups(100), "must not exceed the world size")
        refused(ValueError, lambda: dist.new_subgroups(2), r"The world size \(3\) must be divisible by 'group_size=2'")
        refused(ValueError, lambda: dist.new_subgroups(0), "must be positive")
        refused(ValueError, lambda: by_ranks([]), "cannot be empty")
        refused(ValueError, lambda: by_ranks([[0, 1], [1, 2]]), "Rank 1 has appeared in both subgroup")
        refused(ValueError, lambda: by_ranks([[-1]]), "Rank -1 is out of range")
        refused(ValueError, lambda: split(None, []), "cannot be None or empty")
        refused(ValueError, lambda: split(None, [[0], []]), "the split group cannot be empty")
        refused(ValueError, lambda: split(None, [[0, 0]]), "cannot have duplicate ranks")
        refused(ValueError, lambda: split(None, [[0], [0, 1]]), "Rank 0 has appeared in both")
        refused(ValueError, lambda: split(None, [[5]]), "Rank 5 is out of range")
        refused(ValueError, lambda: split(-100, [[0]]), "not registered")
        refused(ValueError, lambda: split(None, [[0]], backend="cpu:nccl"), "Backend mismatch for device 'cpu'")
        refused(ValueError, lambda: split(None, [[0]], backend="xpu:gloo"), "Requested backend for device 'xpu'")
        return dist.get_pg_count()

    assert run(rank, 3) == [1, 1, 1]


@pytest.mark.ranks(2)
def test_outsiders_count_new_groups() -> None:
    dist.new_group([0])
    assert (dist.get_pg_count(), dist.get_backend_config()) == (2, "cpu:gloo,cuda:gloo")
