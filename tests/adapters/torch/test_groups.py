"""new_group, group.WORLD, GroupMember, and queries of a group."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import collshim.torch.distributed as dist
from tests.adapters.conftest import Refused, Run, each_of


@each_of(3, gives=[([2, 0], 1), None, ([2, 0], 1)])
def test_group_ranks_and_global_ranks(refused: Refused) -> Any:
    group = dist.new_group([2, 0], sort_ranks=False)
    world = dist.group.WORLD
    assert dist.get_process_group_ranks(None) == dist.get_process_group_ranks(world) == [0, 1, 2]
    assert (dist.get_global_rank(world, 1), dist.get_group_rank(world, 1)) == (1, 1)
    if not isinstance(group, dist.ProcessGroup):
        refused(ValueError, lambda: dist.get_process_group_ranks(group), "not registered")
        return None
    refused(ValueError, lambda: dist.get_group_rank(group, 1), "Global rank 1 is not part of group")
    refused(ValueError, lambda: dist.get_global_rank(group, 2), "Group rank 2 is not part of group")
    refused(ValueError, lambda: dist.get_group_rank(None, 0), "not registered")
    return [dist.get_global_rank(group, member) for member in (0, 1)], dist.get_group_rank(group, 0)


@pytest.mark.ranks(2)
def test_group_of_all_ranks_is_not_the_default_group() -> None:
    group = dist.new_group()
    assert (group is dist.group.WORLD, dist.get_process_group_ranks(group)) == (False, [0, 1])


@pytest.mark.ranks(2)
def test_groups_of_equal_ranks_are_isolated() -> None:
    one, two = dist.new_group([0, 1]), dist.new_group([0, 1])
    order = (one, two) if dist.get_rank() == 0 else (two, one)
    works = [dist.all_reduce(tensor := torch.ones(1), group=group, async_op=True) for group in order]
    assert ([work is not None and work.wait() for work in works], tensor.tolist()) == ([True, True], [2.0])


@each_of(3, gives=[2.0, 2.0, None])
def test_local_synchronization_needs_only_the_members() -> Any:
    mine = dist.get_rank()
    if mine == 0:
        dist.new_group([0], use_local_synchronization=True)  # unequal counts of groups are harmless
    if mine == 2:
        return dist.new_group([0, 1], use_local_synchronization=True)
    group = dist.new_group([0, 1], use_local_synchronization=True)
    dist.all_reduce(tensor := torch.ones(1), group=group)
    return tensor.item()


@pytest.mark.ranks(2)
def test_ranks_can_come_in_any_container() -> None:
    given: list[Any] = [
        {1, 0},
        np.array([1, 0]),
        {0: "a", 1: "b"}.keys(),
        (r for r in (1, 0)),
        torch.tensor([0, 1]),
    ]
    assert [dist.get_process_group_ranks(dist.new_group(ranks)) for ranks in given] == [[0, 1]] * 5


@pytest.mark.ranks(2)
def test_root_outside_the_group_is_an_error(refused: Refused) -> None:
    group = dist.new_group([0])
    if dist.get_rank() == 0:
        return
    one = torch.ones(1)
    calls: list[Callable[[int], Any]] = [
        lambda root: dist.broadcast(one, root, group),
        lambda root: dist.reduce(one, root, group=group),
        lambda root: dist.scatter(one, None, root, group),
        lambda root: dist.gather_object(1, None, root, group),
        lambda root: dist.broadcast_object_list([1], root, group),
        lambda root: dist.scatter_object_list([1], None, root, group),
    ]
    for call in calls:
        refused(ValueError, partial(call, 1), "Invalid process group specified")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert call(0) is None
    for objects in (dist.send_object_list, dist.recv_object_list):
        refused(ValueError, partial(objects, [1], 0, group), "Invalid process group specified")


@pytest.mark.ranks(2)
def test_default_group_can_be_replaced() -> None:
    whole, part = dist.group.WORLD, dist.new_group([dist.get_rank()], use_local_synchronization=True)
    dist.group.WORLD = part
    dist.all_reduce(tensor := torch.ones(1))
    found = dist.get_world_size(), dist.GroupMember.WORLD is part, tensor.item()
    dist.group.WORLD = whole
    assert (found, dist.get_world_size()) == ((1, True, 1.0), 2)


@each_of(2, gives=[2, 2])
def test_group_counts_its_calls() -> Any:
    whole: Any = dist.group.WORLD
    whole._set_sequence_number_for_group()
    dist.all_reduce(torch.ones(1))
    dist.barrier()
    return whole._get_sequence_number_for_group()


@pytest.mark.ranks(2)
def test_torch_private_group_queries_are_answered() -> None:
    whole = dist.distributed_c10d._group_or_default_group()
    assert (dist.distributed_c10d._get_group_size(None), whole is dist.group.WORLD) == (2, True)


@pytest.mark.filterwarnings("ignore:Device capability of nope")
@pytest.mark.ranks(2)
def test_invalid_new_group_arguments_are_refused(refused: Refused) -> None:
    refused(ValueError, lambda: dist.new_group([0, 0]), "must not contain duplicate entries")
    refused(ValueError, lambda: dist.new_group([0, 9]), r"Rank 9 is out of range\. Valid ranks are 0 to 1")
    refused(ValueError, lambda: dist.new_group([0, 1, 2]), "new group's world size should be less or equal")
    refused(TypeError, lambda: dist.new_group([]), "at least one rank")
    refused(TypeError, lambda: dist.new_group([0.5]), "ints")  # type: ignore[list-item]
    refused(AssertionError, lambda: dist.new_group([0], backend="nope"), "Unknown backend type nope")
    refused(TypeError, lambda: dist.new_group([0], timeout=3), "of type datetime.timedelta")  # type: ignore[arg-type]


@each_of(1, gives=[("gloo", "gloo", "cpu:gloo")])
def test_backends_are_reported_as_named(refused: Refused) -> Any:
    groups = [dist.new_group([0]), dist.new_group([0], backend="cpu:GLOO")]
    refused(ValueError, lambda: dist.get_backend(-100), "Invalid process group specified")
    refused(ValueError, lambda: dist.get_backend("gloo"), "not initialized in the world group map")  # type: ignore[arg-type]
    return dist.get_backend(), *map(dist.get_backend, groups)


@each_of(2, gives=[(rank, 2, "gloo", "both", "<ProcessGroup ") for rank in range(2)])
def test_group_knows_its_rank() -> Any:
    group = dist.new_group([1, 0], group_desc="both", timeout=timedelta(seconds=5))
    assert isinstance(group, dist.ProcessGroup)
    world = dist.group.WORLD
    assert world is not None
    assert world is dist.GroupMember.WORLD
    assert world.group_name == "0"
    return group.rank(), group.size(), group.name(), group.group_desc, repr(group)[:14]


@each_of(2, gives=[2.0, 2.0])
def test_destroyed_group_is_invalid(refused: Refused) -> Any:
    group = dist.new_group([0, 1])
    dist.all_reduce(torch.ones(1), group=group)
    dist.destroy_process_group(group)
    refused(ValueError, lambda: dist.all_reduce(torch.ones(1), group=group), "is not registered")
    refused(ValueError, lambda: dist.destroy_process_group(group), "Invalid process group specified")
    dist.destroy_process_group(-100)
    dist.all_reduce(tensor := torch.ones(1))
    return tensor.item()


ALONE: dict[str, Callable[[Any], Any]] = {
    "all_reduce": lambda group: dist.all_reduce(torch.ones(1), group=group),
    "all_reduce, async": lambda group: _waited(dist.all_reduce(torch.ones(1), group=group, async_op=True)),
    "all_gather, async": lambda group: _waited(
        dist.all_gather([torch.zeros(1) for _ in range(2)], torch.ones(1), group=group, async_op=True)
    ),
    "recv": lambda group: dist.recv(torch.ones(1), 1 - dist.get_rank(), group=group),
    "irecv": lambda group: _waited(dist.irecv(torch.ones(1), 1 - dist.get_rank(), group=group)),
    "all_gather_object": lambda group: dist.all_gather_object([None, None], 1, group),
    "barrier": lambda group: dist.barrier(group),
}


def _waited(work: Any) -> None:
    work.wait()


@pytest.mark.parametrize("repeated", [False, True])
@pytest.mark.parametrize("call", ALONE)
def test_call_of_one_rank_times_out_with_the_group(run: Run, call: str, repeated: bool) -> None:
    over = threading.Event()

    def rank() -> None:
        group = dist.new_group(timeout=timedelta(seconds=0.2))
        if repeated:
            sent = [dist.isend(torch.ones(1), 1 - dist.get_rank(), group=group)] if "recv" in call else []
            ALONE[call](group)
            for work in sent:
                _waited(work)
        if dist.get_rank() == 0:
            with pytest.raises(RuntimeError, match=r"0\.2 s"):
                ALONE[call](group)
            over.set()
        assert over.wait(20)

    run(rank, 2)
