"""The process group: before there is one, how a rank comes into it, and what it may ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import collshim
import collshim.megengine as mge
from collshim.megengine.functional import distributed as F
from tests.adapters.conftest import Run, each_of

dist = mge.distributed
CALL_FIRST = "please call init_process_group first"


def test_rank_is_alone_before_init() -> None:
    assert (dist.is_distributed(), dist.get_rank(), dist.get_world_size()) == (False, 0, 1)
    dist.group_barrier()
    assert isinstance(dist.new_group([]), dist.Group)
    assert dist.synchronized(lambda: 7)() == 7


@pytest.mark.parametrize(
    "ask",
    [
        dist.get_backend,
        dist.get_client,
        dist.get_py_server_addr,
        dist.get_mm_server_addr,
        lambda: dist.new_group([0]),
        lambda: dist.backend,
        lambda: dist.make_allreduce_cb("sum"),
        lambda: dist.bcast_list_([torch.zeros(1)]),
        lambda: dist.override_backend("shm").__enter__(),
        lambda: setattr(dist, "backend", "nccl"),
    ],
)
def test_group_queries_before_init_are_refused(ask: Callable[[], Any]) -> None:
    with pytest.raises(AssertionError, match=CALL_FIRST):
        ask()


@pytest.mark.parametrize("name", ["size", "rank", "key", "comp_node", "is_single_machine"])
def test_world_has_no_ranks_before_init(name: str) -> None:
    with pytest.raises(TypeError, match=r"object of type 'NoneType' has no len\(\)"):
        getattr(dist.WORLD, name)


GOOD: dict[str, Any] = {"master_ip": "localhost", "port": 23456, "world_size": 2, "rank": 0, "device": 0}


@pytest.mark.parametrize(
    ("changes", "theirs"),
    [
        ({"world_size": 1}, AssertionError),
        ({"rank": 2}, AssertionError),
        ({"rank": -1}, AssertionError),
        ({"port": 0}, AssertionError),
        ({"port": "23456"}, TypeError),
        ({"master_ip": 127}, TypeError),
        ({"rank": 0.0}, TypeError),
        ({"world_size": None}, TypeError),
        ({"device": "xpu0"}, TypeError),
        ({"backend": "gloo"}, ValueError),
        ({"device_type": "cpu"}, ValueError),
    ],
)
def test_invalid_group_arguments_leave_no_trace(changes: dict[str, Any], theirs: type[Exception]) -> None:
    with pytest.raises(theirs) as caught:
        dist.init_process_group(**{**GOOD, **changes})
    assert isinstance(caught.value, collshim.ArgumentError)
    assert not dist.is_distributed()


def join_as(world_size: int, rank: int) -> None:
    dist.init_process_group("localhost", 23456, world_size, rank, 0)


def test_arguments_contradicting_the_world_are_refused() -> None:
    with pytest.raises(collshim.RankError) as caught:
        collshim.launch(join_as, 2, args=(4, 3), timeout=200)
    assert isinstance(caught.value.exception, collshim.WorldError)
    assert "rank 3 of 4 as arguments" in str(caught.value)
    assert " of 2 in the world" in str(caught.value)


def asked() -> dict[str, Any]:
    world = dist.WORLD
    dist.group_barrier()
    return {
        "distributed": dist.is_distributed(),
        "place": (dist.get_rank(), dist.get_world_size()),
        "backend": (dist.get_backend(), dist.backend),
        "address": dist.get_py_server_addr(),
        "world": (world.size, world.rank, world.key, world.comp_node, world.is_single_machine, world.proc_ranks),
    }


@pytest.mark.parametrize("size", [2, 4])
def test_rank_queries(run: Run, size: int) -> None:
    for rank, told in enumerate(run(asked, size)):
        assert told == {
            "distributed": True,
            "place": (rank, size),
            "backend": ("auto", "auto"),
            "address": ("localhost", 23456),
            "world": (size, rank, ",".join(map(str, range(size))), f"xpu{rank}:1", True, list(range(size))),
        }


def of_a_group() -> list[Any]:
    first, second = dist.new_group([3, 0, 1, 2]), dist.new_group((0, 1, 2, 3))
    first_told = [first.size, first.rank, first.key, first.comp_node, first.proc_ranks]
    return [first_told, second.comp_node, [dist.WORLD.comp_node]]


def test_group_keeps_its_order_and_stream(run: Run) -> None:
    for rank, (first, second, everybody) in enumerate(run(of_a_group, 4)):
        assert first == [4, [3, 0, 1, 2].index(rank), "3,0,1,2", f"xpu{rank}:2", [3, 0, 1, 2]]
        assert (second, everybody) == (f"xpu{rank}:3", [f"xpu{rank}:1"])


@each_of(2, gives=[[1, 0], [1, 0]])
def test_group_can_be_filled_later() -> Any:
    group = dist.Group([])
    with pytest.raises(TypeError, match="the group has no ranks yet"):
        _ = group.size
    group.reset([1, 0])
    return F.all_gather(torch.tensor([dist.get_rank()]), group).tolist()


@each_of(2, gives=[[[1, 0], [0, 1]]] * 2)
def test_same_ranks_in_same_order_share_a_group() -> Any:
    """The process group: before it exists, how a rank joins it, and its queries."""
    ranks = [1, 0] if dist.get_rank() == 0 else [0, 1]
    for _ in range(1 + dist.get_rank()):
        dist.new_group([1, 0])
    groups = [dist.new_group(ranks), dist.new_group(ranks[::-1])]
    forward, backward = sorted(groups, key=lambda group: group.key)
    x = torch.tensor([dist.get_rank()])
    everybody = dist.WORLD if dist.get_rank() == 0 else forward
    return [F.all_gather(x, backward).tolist(), F.all_gather(x, everybody).tolist()]


@each_of(2, gives=[["shm", "auto"]] * 2)
def test_backend_name_can_be_overridden_in_a_block() -> list[str]:
    with dist.override_backend("shm"):
        inside = dist.get_backend()
    return [inside, dist.get_backend()]


@each_of(2, gives=[["rccl", "rccl"]] * 2)
def test_backend_name_can_be_set() -> list[str]:
    setattr(dist, "backend", "rccl")  # noqa: B010  # the types know no property of a module
    return [dist.get_backend(), dist.backend]


def joined_again() -> None:
    join_as(2, dist.get_rank())


def test_joining_twice_is_refused(refused: Callable[..., list[BaseException]]) -> None:
    for error in refused(joined_again, 2):
        assert isinstance(error, AssertionError)
        assert isinstance(error, collshim.WorldError)
        assert str(error).startswith("init_process_group should be called only once")


def shared(port: int) -> Any:
    join_at(port)
    client, rank = dist.get_client(), dist.get_rank()
    if rank == 0:
        client.user_set("key", [1, 2])
    return client.user_get("key"), dist.get_client() is client


def join_at(port: int) -> None:
    world = collshim.current()
    dist.init_process_group("localhost", port, world.size, world.rank, 0)


def test_thread_ranks_share_values_at_a_server() -> None:
    server = dist.Server()
    assert collshim.launch(shared, 2, args=(server.py_server_port,), timeout=200) == [([1, 2], True)] * 2


def test_client_needs_a_server(refused: Callable[..., list[BaseException]]) -> None:
    for error in refused(dist.get_client, 2):
        assert isinstance(error, collshim.PeerError)
        assert "start a Server to share values" in str(error)


@each_of(2, gives=[[[0, 1]] * 3, [[1, 2]] * 3])
def test_group_of_one_rank_needs_no_communication() -> Any:
    group = dist.new_group([dist.get_rank()])
    x = torch.arange(2.0) + dist.get_rank()
    return [F.all_gather(x, group).tolist(), F.reduce_sum(x, group).tolist(), F.scatter(x, group).tolist()]
