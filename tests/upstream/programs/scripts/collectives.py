"""Loops of collectives as scripts write them: futures, chains of works, barriers, objects, groups, and messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.nn.functional

from tests.upstream.programs.ranks import run_named

functions: Any = torch.distributed.nn.functional
"""Collectives through which gradients flow."""


def futures(rank: int, size: int) -> object:
    """Chain callbacks, and wait for all futures."""
    works: list[Any] = [dist.all_reduce(torch.full((3,), float(rank + i)), async_op=True) for i in range(5)]
    chained = [work.get_future().then(lambda future: future.value()[0].sum()) for work in works]
    return [float(value) for value in torch.futures.wait_all(chained)]


def ring(rank: int, size: int) -> object:
    """Pass tensors around, with batches and with tags."""
    own, got = torch.tensor([float(rank)]), torch.zeros(1)
    for _ in range(size):
        works = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, own.clone(), (rank + 1) % size), dist.P2POp(dist.irecv, got, (rank - 1) % size)]
        )
        for work in works:
            work.wait()
        own = got.clone()
    assert own.item() == rank
    first, second = torch.zeros(1), torch.zeros(1)
    sends = [dist.isend(torch.tensor([float(10 * rank + tag)]), (rank + 1) % size, tag=tag) for tag in (1, 2)]
    dist.recv(second, (rank - 1) % size, tag=2)
    dist.recv(first, (rank - 1) % size, tag=1)
    for send in sends:
        if send is not None:
            send.wait()
    return [first.item(), second.item()]


def any_source(rank: int, size: int) -> object:
    """Receive from any rank."""
    if rank:
        dist.send(torch.tensor([float(rank)]), 0)
        return None
    found = []
    for _ in range(size - 1):
        tensor = torch.zeros(1)
        source = dist.recv(tensor)
        assert tensor.item() == source
        found.append(source)
    return sorted(found)


def groups(rank: int, size: int) -> object:
    """Reduce in groups of two neighbours, in a group in another order, and in the whole."""
    pairs: list[Any] = [dist.new_group([first, first + 1]) for first in range(0, size, 2)]
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor, group=pairs[rank // 2])
    everyone: list[Any] = [None] * size
    dist.all_gather_object(everyone, {"rank": rank, "sum": tensor.item()})
    mine: Any
    mine, others = dist.new_subgroups(2)
    dist.broadcast(tensor, src=dist.get_global_rank(mine, 0), group=mine)
    for group in pairs:
        dist.destroy_process_group(group)
    return [everyone, tensor.item(), len(others)]


def objects(rank: int, size: int) -> object:
    """Send objects in each way."""
    listed: list[Any] = [{"root": 1}, [1, 2]] if rank == 0 else [None, None]
    dist.broadcast_object_list(listed, src=0)
    gathered: list[Any] | None = [None] * size if rank == 1 else None
    dist.gather_object(("from", rank), gathered, dst=1)
    scattered: list[Any] = [None]
    dist.scatter_object_list(scattered, [f"to {other}" for other in range(size)] if rank == 0 else None)
    return [listed, gathered, scattered]


def barriers(rank: int, size: int) -> object:
    """Wait for a barrier in place of the works before it, as programs over one stream do."""
    tensors = [torch.full((100,), float(rank + i)) for i in range(10)]
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    dist.barrier()
    assert len(works) == 10
    return [work.is_completed() for work in works if work is not None] and [float(tensor[0]) for tensor in tensors]


def dtypes(rank: int, size: int) -> object:
    """Reduce each dtype and operation that gloo has."""
    found: dict[str, object] = {}
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int32, torch.int64, torch.uint8):
        for op in (dist.ReduceOp.SUM, dist.ReduceOp.PRODUCT, dist.ReduceOp.MAX, dist.ReduceOp.MIN):
            tensor = torch.tensor([1, 2, 3]).to(dtype) + rank
            dist.all_reduce(tensor, op)
            found[f"{dtype} {op}"] = tensor.double()
    return found


def monitored(rank: int, size: int) -> object:
    """Wait with the barrier that names missing ranks."""
    dist.monitored_barrier(wait_all_ranks=True)
    return size


def differentiable(rank: int, size: int) -> object:
    """Differentiate through torch.distributed.nn."""
    found: dict[str, object] = {}
    calls: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "all_reduce": lambda own: functions.all_reduce(own),
        "all_gather": lambda own: torch.stack(functions.all_gather(own)) * (rank + 1),
        "broadcast": lambda own: functions.broadcast(own, 0),
        "reduce_scatter": lambda own: functions.reduce_scatter(own[0].clone(), list(own)),
        "all_to_all": lambda own: torch.stack(functions.all_to_all([*torch.zeros(size, 3)], list(own))),
    }
    for name, call in calls.items():
        own = (torch.arange(3.0 * size).reshape(size, 3) + rank).requires_grad_()
        result = call(own)
        result.square().sum().backward()
        found[name] = [result.detach(), own.grad]
    return found


USES: dict[str, Callable[[int, int], object]] = {
    "futures": futures,
    "ring": ring,
    "any-source": any_source,
    "groups": groups,
    "objects": objects,
    "barriers": barriers,
    "dtypes": dtypes,
    "monitored": monitored,
    "differentiable": differentiable,
}


if __name__ == "__main__":
    run_named(USES)
