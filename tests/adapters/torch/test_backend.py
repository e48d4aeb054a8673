"""torch's own ``torch.distributed`` over collshim: calls match gloo, and both modules know each other's groups."""

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
from tests.adapters.torch.comparing import alike
from tests.robustness.scripts import Script, await_ends, scripts

pytestmark = pytest.mark.processes

SIZE = 2
PATIENCE = timedelta(seconds=60)
Op = torchs.ReduceOp
FLOATS = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


def _tensor(rank: int, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    count = torch.Size(shape).numel()
    return (torch.arange(count) + 1 + 10 * rank).reshape(shape).to(dtype)


def _reductions(rank: int) -> Any:
    found = []
    for op in (Op.SUM, Op.MAX, Op.MIN, Op.PRODUCT, Op.AVG):
        for dtype in FLOATS:
            torchs.all_reduce(tensor := _tensor(rank, 3, dtype=dtype), op)
            found.append(tensor)
    for op, dtype in ((Op.BXOR, torch.int64), (Op.SUM, torch.complex64), (Op.MAX, torch.bool)):
        torchs.all_reduce(tensor := _tensor(rank, 3, dtype=dtype), op)
        found.append(tensor)
    torchs.all_reduce(turned := _tensor(rank, 4, 3).t())
    return [*found, turned]


def _works(rank: int) -> Any:
    work: Any = torchs.all_reduce(small := _tensor(rank, 3), async_op=True)
    future = work.get_future().then(lambda done: done.value()[0] * 2)
    other: Any = torchs.all_reduce(large := _tensor(rank, 50_000), async_op=True)
    return [future.wait(), work.wait(), work.is_completed(), work.result(), small, other.wait(), large]


def _rooted(rank: int) -> Any:
    torchs.broadcast(one := _tensor(rank, 3), 1)
    torchs.reduce(two := _tensor(rank, 3), 0)
    gathered = [torch.zeros(3), torch.zeros(3)] if rank == 1 else None
    torchs.gather(_tensor(rank, 3), gathered, 1)
    torchs.scatter(three := torch.zeros(3), [_tensor(5, 3), _tensor(6, 3)] if rank == 0 else None, 0)
    return [one, two if rank == 0 else None, gathered, three]


def _gathers(rank: int) -> Any:
    torchs.all_gather(listed := [torch.zeros(3), torch.zeros(3)], _tensor(rank, 3))
    torchs.all_gather_single(joined := torch.zeros(4, 2), _tensor(rank, 2, 2))
    torchs.reduce_scatter_single(part := torch.zeros(2), _tensor(rank, 4))
    torchs.reduce_scatter(other := torch.zeros(2), [_tensor(rank, 2), _tensor(rank + 1, 2)])
    return [listed, joined, part, other]


def _exchanges(rank: int) -> Any:
    torchs.all_to_all_single(even := torch.zeros(4), _tensor(rank, 4))
    sizes = [1 + rank, 2]
    torchs.all_to_all_single(uneven := torch.zeros(sum(sizes)), _tensor(rank, sum(sizes)), sizes, sizes)
    torchs.all_to_all(listed := [torch.zeros(2), torch.zeros(2)], [_tensor(rank, 2), _tensor(rank + 3, 2)])
    return [even, uneven, listed]


def _objects(rank: int) -> Any:
    torchs.all_gather_object(everyones := [None, None], {"rank": rank})
    torchs.broadcast_object_list(given := [{"a": 1}, "x"] if rank == 0 else [None, None], 0)
    torchs.gather_object(f"rank {rank}", gathered := [None, None] if rank == 0 else None, 0)
    torchs.scatter_object_list(mine := [None], ["p", "q"] if rank == 0 else None, 0)
    return [everyones, given, gathered, mine]


def _point_to_point(rank: int) -> Any:
    other, small, large = 1 - rank, torch.zeros(3), torch.zeros(20_000)
    if rank == 0:
        torchs.send(_tensor(7, 3), 1)
        source = torchs.recv(small)
    else:
        source = torchs.recv(small)
        torchs.send(_tensor(8, 3), 0)
    batch = [torchs.P2POp(torchs.isend, _tensor(rank, 20_000), other), torchs.P2POp(torchs.irecv, large, other)]
    for work in torchs.batch_isend_irecv(batch):
        work.wait()
    return [small, source, large]


def _coalesced(rank: int) -> Any:
    one, two = _tensor(rank, 3), _tensor(rank, 2, 2)
    with torchs._coalescing_manager():
        torchs.all_reduce(one)
        torchs.all_reduce(two)
    joined, short = torch.zeros(6), torch.zeros(2)
    with torchs._coalescing_manager(async_ops=True) as manager:
        torchs.all_gather_single(joined, _tensor(rank, 3))
        torchs.all_gather_single(short, _tensor(rank, 1))
    manager.wait()
    return [one, two, joined, short]


def _functional(rank: int) -> Any:
    import torch.distributed._functional_collectives as functional

    world: Any = torchs.group.WORLD
    found = [
        functional.all_reduce(_tensor(rank, 3), "sum", world),
        functional.all_gather_tensor(_tensor(rank, 3), 0, world),
        functional.reduce_scatter_tensor(_tensor(rank, 4), "sum", 0, world),
        functional.all_to_all_single(_tensor(rank, 4), None, None, world),
        functional.broadcast(_tensor(rank, 3), 0, world),
        *functional.all_reduce_coalesced([_tensor(rank, 3), _tensor(rank, 2)], "sum", world),
        *functional.all_gather_into_tensor_coalesced([_tensor(rank, 3), _tensor(rank, 2)], world),
        *functional.reduce_scatter_tensor_coalesced([_tensor(rank, 4), _tensor(rank, 2)], "sum", [0, 0], world),
    ]
    return [tensor + 0 for tensor in found]


def _groups(rank: int) -> Any:
    turned: Any = torchs.new_group([1, 0], sort_ranks=False)
    torchs.broadcast(moved := _tensor(rank, 3), group=turned, group_src=0)
    alone: Any = torchs.new_group([1])
    asked = [torchs.get_rank(turned), torchs.get_process_group_ranks(turned), torchs.get_rank(alone)]
    if rank == 1:
        torchs.all_reduce(moved, group=alone)
        torchs.destroy_process_group(alone)
    torchs.barrier()
    return [moved, *asked]


CALLS: dict[str, Callable[[int], Any]] = {
    "reductions": _reductions,
    "works and futures": _works,
    "rooted": _rooted,
    "gathers": _gathers,
    "exchanges": _exchanges,
    "objects": _objects,
    "point to point": _point_to_point,
    "coalesced": _coalesced,
    "functional collectives": _functional,
    "groups": _groups,
}


def _outcomes(backend: str, where: str) -> dict[str, Any]:
    rank, store = collshim.current().rank, torchs.FileStore(where + backend, SIZE)
    torchs.init_process_group(backend, store=store, rank=rank, world_size=SIZE, timeout=PATIENCE)
    found = {name: call(rank) for name, call in CALLS.items()}
    torchs.destroy_process_group()
    return found


def _differences(where: str) -> list[str]:
    """Describe the calls with different outcomes, on one rank."""
    theirs, ours = _outcomes("gloo", where), _outcomes("collshim", where)
    return [f"{name}: {theirs[name]}, {ours[name]}" for name in CALLS if not alike(theirs[name], ours[name])]


@pytest.mark.skipif(not hasattr(torchs, "all_gather_single"), reason="the calls are those of torch 2.13")
def test_backend_calls_match_gloo_outcomes(tmp_path: Path) -> None:
    arguments = (str(tmp_path / "store"),)
    with collshim.options(timeout=60):
        assert collshim.launch(_differences, SIZE, ranks="processes", args=arguments, timeout=200) == [[]] * SIZE


def _one_default_group_for_both() -> None:
    """Each module knows the group that the other made, until either destroys it."""
    dist.init_process_group("gloo")
    rank: int = torchs.get_rank()
    assert torchs.get_backend() == "collshim"
    assert dist.get_backend() == "gloo"
    assert torchs.group.WORLD is dist.group.WORLD
    swaps = hasattr(torchs, "all_gather_single")  # before torch 2.13 its own groups are sorted
    ours: Any = dist.new_group([1, 0], sort_ranks=not swaps)
    theirs: Any = torchs.new_group([0, 1])
    torchs.broadcast(tensor := torch.tensor([float(rank)]), group=ours, group_src=0 if swaps else 1)
    dist.all_reduce(tensor, group=theirs)
    assert tensor.item() == 2
    assert [torchs.get_rank(ours), dist.get_rank(theirs)] == [1 - rank if swaps else rank, rank]
    for group in (None, ours, theirs):
        model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1), process_group=group)
        model(torch.full((1, 2), float(rank))).sum().backward()
        assert model.module.weight.grad.tolist() == [[0.5, 0.5]]
    dist.destroy_process_group(ours)
    with pytest.raises(ValueError, match="Invalid process group"):
        torchs.destroy_process_group(ours)
    torchs.destroy_process_group()
    assert not dist.is_initialized()


def _a_default_group_that_is_there_is_adopted(where: str) -> None:
    """Torch's gloo group stays, and its groups are names for ours."""
    store = torchs.FileStore(where, SIZE)
    torchs.init_process_group("gloo", store=store, rank=collshim.current().rank, world_size=SIZE, timeout=PATIENCE)
    theirs: Any = torchs.new_group([0, 1])
    alone: Any = torchs.new_group([0])
    dist.init_process_group("gloo")
    rank = dist.get_rank(theirs)
    for group in (None, torchs.group.WORLD, theirs):
        dist.all_reduce(tensor := torch.tensor([1.0 + rank]), group=group)
        assert tensor.item() == 3
    assert dist.get_process_group_ranks(theirs) == [0, 1]
    assert (dist.get_rank(alone), dist.get_backend(theirs)) == ((0, -1)[rank], "gloo")
    for ours in (dist.group.WORLD, dist.new_group()):
        model = nn.parallel.DistributedDataParallel(nn.Linear(2, 1), process_group=ours)
        model(torch.full((1, 2), float(rank))).sum().backward()
        assert model.module.weight.grad.tolist() == [[0.5, 0.5]]
    dist.destroy_process_group()
    torchs.all_reduce(tensor := torch.ones(1))
    assert (tensor.item(), torchs.get_backend()) == (2, "gloo")
    torchs.destroy_process_group()


def _what_ends_a_process_over_gloo_is_an_error() -> None:
    """The call is refused on every rank, and the group continues."""
    torchs.init_process_group("collshim", store=torchs.HashStore(), rank=collshim.current().rank, world_size=SIZE)
    with pytest.raises(collshim.MismatchError, match="shape"):
        torchs.all_reduce(torch.ones(4 + 2 * torchs.get_rank()))
    with pytest.raises(RuntimeError, match="all_to_all_single"):
        torchs.all_to_all_single(torch.zeros(3), torch.zeros(3))
    torchs.all_reduce(tensor := torch.ones(1))
    assert tensor.item() == 2
    torchs.destroy_process_group()


def _in_turn(where: str) -> None:
    _one_default_group_for_both()
    _a_default_group_that_is_there_is_adopted(where)
    _what_ends_a_process_over_gloo_is_an_error()


def test_torch_and_adapter_share_their_groups(tmp_path: Path) -> None:
    with collshim.options(timeout=60):
        collshim.launch(_in_turn, SIZE, ranks="processes", args=(str(tmp_path / "store"),), timeout=200)


UNAWAITED = """
import sys
import torch
import torch.distributed as torchs
import collshim.torch.distributed as dist
rank, where = int(sys.argv[1]), sys.argv[2]
torchs.init_process_group("collshim", store=torchs.FileStore(where, 2), rank=rank, world_size=2)
torchs.all_reduce(tensor := torch.ones(100_000), group=torchs.new_group([0, 1]))
torchs.all_reduce(tensor, async_op=True).get_future()
print(rank, "ends", flush=True)
"""


def test_processes_end_cleanly_without_destroy(tmp_path: Path) -> None:
    with scripts([Script(UNAWAITED, rank, tmp_path / "store") for rank in range(SIZE)]) as processes:
        found = await_ends(processes)
    assert [(seen.code, seen.out) for seen in found] == [(0, "0 ends\n"), (0, "1 ends\n")], found


def test_single_process_has_torch_default_group() -> None:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    try:
        torchs.all_reduce(tensor := torch.ones(1))
        assert (tensor.item(), torchs.get_world_size()) == (1, 1)
        group: Any = torchs.distributed_c10d._get_default_group()
        assert group._get_backend(torch.device("cpu")) is group  # which torch 2.14 asks for
    finally:
        dist.destroy_process_group()
    assert not torchs.is_initialized()


def test_closed_world_does_not_block_the_default_group() -> None:
    for _ in range(2):
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        collshim.close()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    dist.destroy_process_group()
    assert not torchs.is_initialized()
