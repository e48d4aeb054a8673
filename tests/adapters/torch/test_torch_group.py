"""A group of the engine's as torch's modules see it: several tensors, operators, hooks, options, parts of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as torchs
from torch import Tensor, nn

import collshim
import collshim.torch.distributed as dist
from collshim.torch.distributed.c10d.torch_group import TorchGroup
from tests.adapters.torch.comparing import alike

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not hasattr(torchs, "all_gather_single"), reason="the calls are those of torch 2.13"),
]

SIZE = 2
PATIENCE = timedelta(seconds=60)


def _full(rank: int, value: float = 1.0) -> Tensor:
    return torch.full((2,), value + rank)


def _several(rank: int) -> Any:
    world: Any = torchs.group.WORLD
    found: list[Any] = []
    for op in (torchs.ReduceOp.SUM, torchs.ReduceOp.PRODUCT, torchs.ReduceOp.MIN, torchs.ReduceOp.MAX):
        options: Any = torchs.AllreduceOptions()
        options.reduceOp = op
        world.allreduce(tensors := [_full(rank), _full(rank, 10.0)], options).wait()
        found.append(tensors)
    for index in range(2):
        root = torchs.BroadcastOptions()
        root.rootRank, root.rootTensor = 1, index
        world.broadcast(tensors := [_full(rank), _full(rank, 10.0)], root).wait()
        found.append(tensors)
    gathered = [[torch.zeros(2) for _ in range(4)] for _ in range(2)]
    world.allgather(gathered, [_full(rank), _full(rank, 10.0)]).wait()
    return [*found, gathered]


def _refusals(rank: int) -> Any:
    world: Any = torchs.group.WORLD
    one, pair = torch.zeros(1), [torch.zeros(1), torch.zeros(1)]
    lists, reduced, gathered, scattered = [pair, pair], torchs.ReduceOptions(), None, torchs.ScatterOptions()
    gathered = torchs.GatherOptions()
    attempts: list[Callable[[], Any]] = [
        lambda: world.allreduce([torch.zeros(1), torch.zeros(2)]),
        lambda: world.allreduce([torch.zeros(1), torch.zeros(1, dtype=torch.int32)]),
        lambda: world.allreduce([]),
        lambda: world.allreduce_coalesced([]),
        lambda: world.allgather([], []),
        lambda: world.allgather([[one] * 3, [one] * 4], pair),
        lambda: world.reduce(pair, reduced),
        lambda: world.gather(lists if rank == 0 else [], pair, gathered),
        lambda: world.scatter(pair, lists if rank == 0 else [], scattered),
        lambda: world.send(pair, 1 - rank, 0),
        lambda: world._register_on_completion_hook(print),
        lambda: world._get_backend(torch.device("cpu")).mem_allocator,
        lambda: world._get_backend(torch.device("cpu")).memory_stats(),
    ]
    kinds = []
    for attempt in attempts:
        with pytest.raises(RuntimeError) as caught:  # a NotImplementedError is one
            attempt()
        kinds.append(isinstance(caught.value, NotImplementedError))
    return kinds


def _operators(rank: int) -> Any:
    """Call ``torch.ops.c10d`` with the boxed group."""
    world: Any = torchs.group.WORLD
    ops, group, total = torch.ops.c10d, world.boxed(), torch.classes.c10d.ReduceOp()
    zeros = [torch.zeros(2) for _ in range(7)]
    parts = [torch.zeros(2) for _ in range(6)]
    works = [
        ops.allreduce_([own := _full(rank)], group, total, None, False, -1)[1],
        ops.allreduce_coalesced_([one := _full(rank), two := torch.ones(3)], group, total),
        ops.broadcast_([sent := _full(rank)], group, 1, 0)[1],
        ops.reduce_([reduced := _full(rank)], group, total, 0, 0),
        ops.allgather_([parts[:2]], [_full(rank)], group)[1],
        ops._allgather_base_(joined := torch.zeros(4), _full(rank), group)[1],
        ops.gather_([parts[2:4]] if rank == 0 else [], [_full(rank)], group, 0),
        ops.scatter_([zeros[0]], [[_full(5), _full(6)]] if rank == 0 else [], group, 0)[1],
        ops.reduce_scatter_([zeros[1]], [[_full(rank), _full(7)]], group, total)[1],
        ops._reduce_scatter_base_(zeros[2], torch.ones(4), group, total)[1],
        ops.alltoall_(parts[4:], [_full(rank), _full(rank, 3.0)], group)[1],
        ops.alltoall_base_(zeros[3], _full(rank), group, [], []),
        ops.allgather_into_tensor_coalesced_([wide := torch.zeros(4)], [_full(rank)], group),
        ops.reduce_scatter_tensor_coalesced_([zeros[4]], [torch.ones(4)], group, total),
        ops.allgather_coalesced_([[zeros[5]], [zeros[6]]], [_full(rank)], group),
        ops.barrier(torch.zeros(1), group, []),
    ]
    for work in works:
        work.wait()
    return [own, one, two, sent, reduced if rank == 0 else None, joined, wide, *zeros, *parts]


def _messages_by_operators(rank: int) -> Any:
    world: Any = torchs.group.WORLD
    ops, group, total = torch.ops.c10d, world.boxed(), torch.classes.c10d.ReduceOp()
    own = torch.zeros(2)
    ops.monitored_barrier_(torch.zeros(1), group, [], 20_000, False)
    if rank == 0:
        ops.send([_full(3)], group, 1, 3).wait()
        ops.recv_any_source_([own], group, 4).wait()
    else:
        ops.recv_([own], group, 0, 3).wait()
        ops.send([own * 2], group, 0, 4).wait()
    with torch.inference_mode():
        ops.allreduce_([inferred := torch.ones(1)], group, total, None)[1].wait()
    return [own, inferred + 0]


def _functional_operators(rank: int) -> Any:
    """Call the operators of functional collectives that Inductor and Dynamo write into graphs, by name and by group."""
    world: Any = torchs.group.WORLD
    ops, found = torch.ops._c10d_functional, list[Any]()
    for group in (world, world.group_name):
        gathered = ops.all_gather_into_tensor_out(_full(rank), SIZE, group, out=(place := torch.zeros(2 * SIZE)))
        assert gathered is place
        found.append(ops.wait_tensor(gathered))
    tensors = [_full(rank), received := torch.zeros(2)]
    passed = ops.batch_p2p_ops(["isend", "irecv"], [1 - rank] * 2, [3, 3], tensors, world.group_name)
    found += [ops.wait_tensor(tensor) for tensor in passed]
    assert passed[1] is received
    with pytest.raises(RuntimeError, match="push"):
        ops.batch_p2p_ops(["push"], [1 - rank], [0], [_full(rank)], world.group_name)
    with pytest.raises(RuntimeError):  # before anything is sent; torch's has no text
        ops.batch_p2p_ops(["isend"], [1 - rank, 0], [0], [_full(rank)], world.group_name)
    abstract = ops.all_gather_into_tensor_out(_full(rank).to("meta"), SIZE, world.group_name, out=place.to("meta"))
    return [*found, abstract.shape]


def _functional_operators_of_gloo(rank: int) -> Any:
    """Torch's own kernels still serve groups of other backends."""
    gloo: Any = torchs.new_group(backend="gloo")
    place = torch.zeros(2 * SIZE)
    ops = torch.ops._c10d_functional
    ops.wait_tensor(ops.all_gather_into_tensor_out(_full(rank), SIZE, gloo.group_name, out=place))
    torchs.destroy_process_group(gloo)
    return place


def _other_groups(rank: int) -> Any:
    """Torch's own kernels still serve groups of other backends."""
    gloo: Any = torchs.new_group(backend="gloo")
    world: Any = torchs.group.WORLD
    world.boxed()
    torch.ops.c10d.allreduce_([one := _full(rank)], gloo.boxed(), torch.classes.c10d.ReduceOp(), None)[1].wait()
    torchs.all_reduce(two := _full(rank), group=gloo)
    torchs.all_gather(gathered := [torch.zeros(2) for _ in range(SIZE)], _full(rank), group=gloo)
    torchs.reduce_scatter_single(three := torch.zeros(2), torch.ones(4), group=gloo)
    torchs.destroy_process_group(gloo)
    return [one, two, three, *gathered]


def _sparse(rank: int) -> Any:
    torchs.all_reduce(own := torch.sparse_coo_tensor(torch.tensor([[rank]]), torch.ones(1), (SIZE,)))
    torch.manual_seed(0)
    layers = nn.Sequential(nn.EmbeddingBag(10, 4, mode="sum", sparse=True), nn.Linear(4, 1))
    model = nn.parallel.DistributedDataParallel(layers)
    model(torch.tensor([[rank, 3]])).sum().backward()
    grad: Any = model.module[0].weight.grad
    return [own.to_dense(), grad.is_sparse, grad.to_dense(), model.module[1].weight.grad]


def _hooks(rank: int) -> Any:
    found = []
    for kind in (torchs.BuiltinCommHookType.ALLREDUCE, torchs.BuiltinCommHookType.FP16_COMPRESS):
        torch.manual_seed(0)
        model: Any = nn.parallel.DistributedDataParallel(nn.Linear(4, 2))
        model._register_builtin_comm_hook(kind)
        model(torch.full((2, 4), 1.0 + rank)).sum().backward()
        found += [parameter.grad for parameter in model.parameters()]
    return found


def _shapes_of_results(rank: int) -> Any:
    single: Any = torchs.all_gather_single(torch.zeros(4), _full(rank), async_op=True)
    barrier: Any = torchs.barrier(async_op=True)
    listed: Any = torchs.all_gather([torch.zeros(2), torch.zeros(2)], _full(rank), async_op=True)
    return [single.get_future().wait(), barrier.get_future().wait(), listed.get_future().wait()]


def _attributes(rank: int) -> Any:
    world: Any = torchs.group.WORLD
    backend = world._get_backend(torch.device("cpu"))
    backend._set_default_timeout(timedelta(seconds=50))
    torchs.all_reduce(own := _full(rank), group=world)
    return [
        torch.device("cpu") in world._device_types,
        backend.options._timeout,
        backend.eager_connect_single_device(torch.device("cpu")),
        backend.supports_shrinking,
        getattr(backend, "supports_time_estimate", False),  # in 2.15 gloo's has no such name
        own,
    ]


CALLS: dict[str, Callable[[int], Any]] = {
    "several tensors": _several,
    "refusals": _refusals,
    "operators": _operators,
    "messages by operators": _messages_by_operators,
    "functional operators": _functional_operators,
    "functional operators of gloo": _functional_operators_of_gloo,
    "other groups": _other_groups,
    "sparse": _sparse,
    "hooks": _hooks,
    "results": _shapes_of_results,
    "attributes": _attributes,
}


def _differences(where: str, name: str) -> str | None:
    found = []
    for backend in ("gloo", "collshim"):
        rank, store = collshim.current().rank, torchs.FileStore(where + backend, SIZE)
        torchs.init_process_group(backend, store=store, rank=rank, world_size=SIZE, timeout=PATIENCE)
        found.append(CALLS[name](rank))
        torchs.destroy_process_group()
    return None if alike(*found) else f"gloo: {found[0]}, collshim: {found[1]}"


@pytest.mark.parametrize("name", CALLS)
def test_group_matches_gloos(name: str, tmp_path: Path) -> None:
    arguments = (str(tmp_path / "store"), name)
    assert collshim.launch(_differences, SIZE, ranks="processes", args=arguments, timeout=200) == [None] * SIZE


def _power_sgd() -> Any:
    torchs.init_process_group("collshim", store=torchs.HashStore(), rank=collshim.current().rank, world_size=SIZE)
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power

    torch.manual_seed(0)
    model: Any = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 4)))
    model.register_comm_hook(power.PowerSGDState(None, 2, start_powerSGD_iter=2), power.powerSGD_hook)
    for step in range(4):
        model(torch.full((2, 64), 1.0 + torchs.get_rank() + step)).square().mean().backward()
    torchs.destroy_process_group()
    return [parameter.grad for parameter in model.parameters()]


@pytest.mark.parametrize("check", [True, False])
def test_callbacks_of_power_sgd_wait_for_later_calls(check: bool) -> None:
    """Not beside gloo, whose group may end on a thread of its own that runs such a callback, which aborts."""
    with collshim.options(check=check):
        one, other = collshim.launch(_power_sgd, SIZE, ranks="processes", timeout=200)
    assert alike(one, other)
    assert all(bool(gradient.any()) for gradient in one)


def _on_a_thread() -> Any:
    dist.init_process_group("gloo")
    rank: int = dist.get_rank()
    world: Any = dist.group.WORLD
    world.allreduce(tensors := [_full(rank), _full(rank, 10.0)]).wait()
    _, work = torch.ops.c10d.allreduce_([own := _full(rank)], world.boxed(), torch.classes.c10d.ReduceOp(), None)
    work.wait()
    average: Any = torchs.AllreduceOptions()
    average.reduceOp = torchs.ReduceOp.AVG
    world.allreduce(averaged := [torch.ones(2), torch.ones(2)], average).wait()
    half, turned = world.split_group([0]), world.split_group([1, 0], timedelta(seconds=20), group_name="turned")
    assert [half is None, turned.rank(), turned.group_name] == [rank == 1, 1 - rank, "turned"]
    turned.broadcast([sent := _full(rank)], 0).wait()
    assert sent.tolist() == [2.0, 2.0]
    assert isinstance(world, TorchGroup)
    with pytest.raises(RuntimeError, match="does not support merge_remote_group: start all ranks together"):
        world.merge_remote_group(None, 4)
    dist.destroy_process_group()
    return [tensor.tolist() for tensor in (*tensors, own, *averaged)]


@pytest.mark.threads
def test_threads_have_such_groups_too() -> None:
    expected = [[24.0, 24.0], [24.0, 24.0], [3.0, 3.0], [2.0, 2.0], [2.0, 2.0]]
    assert collshim.launch(_on_a_thread, SIZE, timeout=200) == [expected] * SIZE


def test_nobody_waits_for_forgotten_works() -> None:
    assert collshim.launch(_pending, 1, timeout=200) == [0]


def _pending() -> int:
    dist.init_process_group("gloo")
    for _ in range(3):
        dist.all_reduce(torch.ones(1), async_op=True)
    world: Any = dist.group.WORLD
    world._wait_for_pending_works()
    pending = len(world.order)
    dist.destroy_process_group()
    return pending


def test_group_takes_split_sizes_as_a_tensor() -> None:
    assert collshim.launch(_with_sizes_in_a_tensor, 2, timeout=200) == [[0.0, 0.0], [1.0, 1.0]]


def _with_sizes_in_a_tensor() -> Any:
    dist.init_process_group("gloo")
    group: Any = dist.group.WORLD
    sizes, received = torch.tensor([1, 1]), torch.zeros(2)
    group.all_to_all_single(received, torch.tensor([0.0, 1.0]), sizes, sizes).wait()
    return received.tolist()
