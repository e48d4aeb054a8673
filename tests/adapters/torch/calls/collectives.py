"""Calls that torch over gloo answers: collectives, sends and receives, groups."""

from __future__ import annotations

from typing import Any

import torch

from tests.adapters.torch.calls.given import SIZE, Call, Op, tensor_of

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int8, torch.uint8]


def _reductions(d: Any, rank: int) -> Any:
    """Every op on every dtype that gloo reduces."""
    found = []
    for dtype in (*FLOATS, *INTEGERS):
        for op in (Op.SUM, Op.PRODUCT, Op.MIN, Op.MAX):
            d.all_reduce(tensor := tensor_of(rank, dtype), op)
            found.append(tensor.double().tolist())
    for op in (Op.BAND, Op.BOR, Op.BXOR):
        d.all_reduce(tensor := tensor_of(rank, torch.int64), op)
        found.append(tensor.tolist())
    return found


def _averages(d: Any, rank: int) -> Any:
    found = []
    for dtype in FLOATS:
        d.all_reduce(tensor := tensor_of(rank, dtype), Op.AVG)
        found.append(tensor.double().tolist())
    return found


def _on_root(d: Any, rank: int) -> Any:
    """``reduce`` leaves partial sums off the root over gloo, which is no convention."""
    d.reduce(tensor := tensor_of(rank), 1)
    return tensor.tolist() if rank == 1 else None


def _groups(d: Any, rank: int) -> Any:
    group, turned = d.new_group([2, 0]), d.new_group([2, 0], sort_ranks=False)
    asked = [d.get_rank(group), d.get_world_size(group), d.get_rank(turned)]
    if rank == 1:
        return [*asked, group, turned]
    d.all_gather(gathered := [torch.zeros(SIZE), torch.zeros(SIZE)], tensor_of(rank), turned)
    d.broadcast(moved := tensor_of(rank), group_src=0, group=turned)
    asked += [d.get_process_group_ranks(turned), d.get_global_rank(turned, 0), d.get_group_rank(turned, 0)]
    return [*asked, [tensor.tolist() for tensor in (*gathered, moved)]]


def _outside(d: Any, rank: int) -> Any:
    group, tensor = d.new_group([0]), torch.zeros(1)
    if rank == 0:
        return None
    calls = [
        d.all_reduce(tensor, group=group),
        d.broadcast(tensor, 0, group),
        d.gather(tensor, group=group),
        d.all_to_all_single(tensor, tensor, group=group),
        d.barrier(group),
        d.isend(tensor, 0, group),
        d.recv(tensor, 0, group),
    ]
    return calls


def _pairs(d: Any, rank: int) -> Any:
    if rank == 0:
        return [d.send(tensor_of(rank), 1), d.isend(tensor_of(rank), 2, tag=7).wait()]
    if rank == 1:
        return [d.recv(tensor := torch.zeros(SIZE)), tensor.tolist()]
    work = d.irecv(tensor := torch.zeros(SIZE), 0, tag=7)
    return [work.wait(), work.is_completed(), tensor.tolist()]


def _works(d: Any, rank: int) -> Any:
    work = d.all_reduce(tensor := tensor_of(rank), async_op=True)
    return [work.wait(), work.is_completed(), work.is_success(), work.exception(), tensor.tolist()]


def _layouts(d: Any, rank: int) -> Any:
    turned, sliced, empty = torch.arange(6.0).view(2, 3).t() + rank, torch.arange(8.0), torch.zeros(0)
    d.all_reduce(turned)
    d.broadcast(sliced[::2], 1)
    d.all_reduce(empty)
    d.all_reduce(scalar := torch.tensor(1.0))
    return [tensor.tolist() for tensor in (turned, sliced, empty, scalar)]


def _scattered(d: Any, rank: int) -> Any:
    parts = [tensor_of(rank) * part for part in range(SIZE)]
    d.scatter(scattered := torch.zeros(SIZE), parts if rank == 1 else None, src=1)
    d.reduce_scatter(summed := torch.zeros(SIZE), parts)
    d.reduce_scatter_single(highest := torch.zeros(SIZE), torch.cat(parts), Op.MAX)
    return [tensor.tolist() for tensor in (scattered, summed, highest)]


def _gathered(d: Any, rank: int) -> Any:
    outputs = [torch.zeros(SIZE) for _ in range(SIZE)]
    d.gather(tensor_of(rank), outputs if rank == 2 else None, dst=2)
    d.all_gather_single(joined := torch.zeros(SIZE * SIZE), tensor_of(rank))
    d.all_gather(pairs := [torch.zeros(SIZE, 2) for _ in range(SIZE)], tensor_of(rank) * (1 + 1j))
    return [tensor.tolist() for tensor in (*outputs, joined, *pairs)]


def _exchanged(d: Any, rank: int) -> Any:
    d.all_to_all(parts := [torch.zeros(1) for _ in range(SIZE)], list(tensor_of(rank).chunk(SIZE)))
    d.all_to_all_single(equal := torch.zeros(SIZE), tensor_of(rank))
    sizes = [rank + 1] * SIZE, [1, 2, 3]  # rank r gets r + 1 elements from everybody
    d.all_to_all_single(unequal := torch.zeros(SIZE * (rank + 1)), torch.arange(6.0) + rank, *sizes)
    return [tensor.tolist() for tensor in (*parts, equal, unequal)]


def _large(d: Any, rank: int) -> Any:
    """More than travels with the description of a call."""
    whole = torch.arange(30_000.0) + rank
    d.all_reduce(total := whole.clone())
    d.all_gather_single(joined := torch.zeros(SIZE * 30_000), whole)
    d.all_to_all_single(exchanged := torch.zeros(30_000), whole)
    d.reduce_scatter_single(part := torch.zeros(10_000), whole)
    work = d.isend(whole, (rank + 1) % SIZE)
    source = d.recv(received := torch.zeros(30_000), (rank - 1) % SIZE)
    outputs = (total, joined, exchanged, part, received)
    return [work.wait(), source, [tensor.double().sum().item() for tensor in outputs]]


CALLS: dict[str, Call] = {
    "reductions": _reductions,
    "averages": _averages,
    "reduce": _on_root,
    "groups": _groups,
    "outside": _outside,
    "pairs": _pairs,
    "works": _works,
    "layouts": _layouts,
    "scattered": _scattered,
    "gathered": _gathered,
    "exchanged": _exchanged,
    "large": _large,
}
