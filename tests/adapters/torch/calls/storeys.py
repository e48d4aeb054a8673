"""Calls that torch builds on collectives: objects, coalesced forms, batches, subgroups, futures, profiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as gloo

from tests.adapters.torch.calls.collectives import SIZE, Call, Op, tensor_of


def _objects(d: Any, rank: int) -> Any:
    given = {"rank": rank, "text": "x" * 100 * rank}
    d.all_gather_object(gathered := [None] * SIZE, given)
    d.gather_object(given, rooted := [None] * SIZE if rank == 1 else None, dst=1)
    d.broadcast_object_list(sent := [given, rank, None], src=2)
    d.scatter_object_list(scattered := [None, 7], [given] * SIZE if rank == 0 else None)
    return [gathered, rooted, sent, scattered]


def _object_messages(d: Any, rank: int) -> Any:
    if rank == 0:
        return [d.send_object_list([1, "two"], 1), d.send_object_list([3], dst=2, use_batch=True)]
    objects: list[Any] = [None] * (3 - rank)
    return [d.recv_object_list(objects, 0, use_batch=rank == 2), objects]


def _objects_that_do_not_fit(d: Any, rank: int) -> Any:
    objects: list[Any] = [None]
    try:
        d.all_gather_object(objects, rank)
    except IndexError:
        objects.append("index")
    d.all_gather_object(long := [None] * (SIZE + 1), rank)
    return [objects, long]


def _coalesced(d: Any, rank: int) -> Any:
    d.all_reduce_coalesced(summed := [tensor_of(rank), torch.ones(2, 2) * rank])
    future = d.all_reduce_coalesced(later := [tensor_of(rank)], Op.MAX, async_op=True)
    outputs = [[torch.zeros(2), torch.zeros(3)] for _ in range(SIZE)]
    d.all_gather_coalesced(outputs, [torch.ones(2) * rank, tensor_of(rank)])
    value = [tensor.tolist() for tensor in future.wait()]
    return [value, [tensor.tolist() for tensor in (*summed, *later, *outputs[0], *outputs[1], *outputs[2])]]


def _held_back(d: Any, rank: int) -> Any:
    reduced, whole, part = [tensor_of(rank) for _ in range(2)], torch.zeros(9), torch.zeros(3)
    with d._coalescing_manager():
        inside = [d.all_reduce(tensor) for tensor in reduced]
    with d._coalescing_manager(async_ops=True) as manager:
        illegal = d.all_gather_single(whole, tensor_of(rank), async_op=True)
    manager.wait()
    with d._coalescing_manager():
        d.reduce_scatter_single(part, torch.arange(9.0) + rank)
    names = [type(illegal).__name__.lstrip("_"), len(manager.works)]
    return [inside, names, [tensor.tolist() for tensor in (*reduced, whole, part)]]


def _batch(d: Any, rank: int) -> Any:
    received = torch.zeros(SIZE)
    ring = [
        d.P2POp(d.isend, tensor_of(rank), (rank + 1) % SIZE),
        d.P2POp(d.irecv, received, group_peer=(rank - 1) % SIZE),
    ]
    works = d.batch_isend_irecv(ring)
    shown = [repr(each) for each in ring]
    return [[work.wait() for work in works], received.tolist(), shown, ring[1].peer, ring[0].group_peer]


def _subgroups(d: Any, rank: int) -> Any:
    mine, groups = d.new_subgroups(1)
    named, _ = d.new_subgroups_by_enumeration([[0, 2], [1]])
    asked = [d.get_world_size(mine), d.get_process_group_ranks(mine), len(groups), d.get_process_group_ranks(named)]
    return [*asked, d.get_pg_count(), d.get_backend_config(mine), mine.group_desc]


def _futures(d: Any, rank: int) -> Any:
    work = d.all_reduce(tensor_of(rank), async_op=True)
    future = work.get_future().then(lambda done: [tensor * 2 for tensor in done.value()])
    gathered = d.all_gather([torch.zeros(SIZE) for _ in range(SIZE)], tensor_of(rank), async_op=True)
    found = [*future.wait(), *gathered.get_future().wait()]
    gathered.wait()
    return [isinstance(work, gloo.Work), [tensor.tolist() for tensor in (*found, *gathered.result())]]


def _profiled(d: Any, rank: int) -> Any:
    """Return each call's events, by title and shapes."""
    parts = [torch.zeros(SIZE) for _ in range(SIZE)]
    calls: list[Callable[[], Any]] = [
        lambda: d.all_reduce(tensor_of(rank)),
        lambda: d.all_reduce(tensor_of(rank) * 1j),
        lambda: d.broadcast(tensor_of(rank), 0),
        lambda: d.reduce(tensor_of(rank), 0),
        lambda: d.all_gather(parts, tensor_of(rank)),
        lambda: d.gather(tensor_of(rank), parts if rank == 0 else None),
        lambda: d.scatter(tensor_of(rank), parts if rank == 0 else None),
        lambda: d.barrier(),
        lambda: d.all_reduce_coalesced([tensor_of(rank), torch.zeros(1)]),
        lambda: d.send(tensor_of(rank), 1) if rank == 0 else d.recv(tensor_of(rank), 0) if rank == 1 else None,
        lambda: d.send(tensor_of(rank), 1) if rank == 0 else d.recv(tensor_of(rank)) if rank == 1 else None,
    ]
    return [_events(call) for call in calls]


def _events(call: Callable[[], Any]) -> Any:
    profiler: Any = torch.autograd.profiler.profile(record_shapes=True)
    with profiler:
        call()
    found = [event for event in profiler.function_events if event.name.startswith("gloo:")]
    return [(event.name, event.is_async, [list(shape) for shape in event.input_shapes]) for event in found]


def _sparse(d: Any, rank: int) -> Any:
    dense = torch.zeros(4, 2)
    dense[rank] = rank + 1.0
    dense[3] = 1.0
    d.all_reduce(tensor := dense.to_sparse(1))
    return [tensor.is_sparse, tensor.to_dense().tolist()]


CALLS: dict[str, Call] = {
    "objects": _objects,
    "object messages": _object_messages,
    "objects that do not fit": _objects_that_do_not_fit,
    "coalesced": _coalesced,
    "held back": _held_back,
    "batch": _batch,
    "subgroups": _subgroups,
    "futures": _futures,
    "profiled": _profiled,
    "sparse": _sparse,
}
