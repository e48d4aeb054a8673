"""Calls of collectives, and their operands; torch over gloo has the same outcomes of ``CALLS``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import collshim.torch.distributed as dist

SIZE = 3
Op = torch.distributed.ReduceOp
Call = Callable[[Any, int], Any]


def tensor_of(rank: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return [1, 2, 3] on rank 0, [2, 3, 4] on rank 1."""
    return (torch.arange(SIZE) + 1 + rank).to(dtype)


def _on_root(parts: Any) -> Any:
    return parts if dist.get_rank() == 0 else None


EACH: dict[str, Callable[..., Any]] = {
    "all_reduce": lambda t, two, whole, group=None: dist.all_reduce(t, group=group),
    "reduce": lambda t, two, whole, group=None: dist.reduce(t, 0, group=group),
    "broadcast": lambda t, two, whole, group=None: dist.broadcast(t, 0, group),
    "all_gather": lambda t, two, whole, group=None: dist.all_gather(two, t, group),
    "all_gather_single": lambda t, two, whole, group=None: dist.all_gather_single(whole, t, group),
    "gather": lambda t, two, whole, group=None: dist.gather(t, _on_root(two), 0, group),
    "scatter": lambda t, two, whole, group=None: dist.scatter(t, _on_root(two), 0, group),
    "reduce_scatter": lambda t, two, whole, group=None: dist.reduce_scatter(t, two, group=group),
    "reduce_scatter_single": lambda t, two, whole, group=None: dist.reduce_scatter_single(two[0][:1], t, group=group),
    "all_to_all": lambda t, two, whole, group=None: dist.all_to_all(two, [t, t], group),
    "all_to_all_single": lambda t, two, whole, group=None: dist.all_to_all_single(two[0], t, group=group),
}
"""Each once, on a rank of two: ``EACH[name](t, two, whole, group)``, with two tensors like ``t``, and one of both."""


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


def _works(d: Any, rank: int) -> Any:
    work = d.all_reduce(tensor := tensor_of(rank), async_op=True)
    return [work.wait(), work.is_completed(), work.is_success(), work.exception(), tensor.tolist()]


CALLS: dict[str, Call] = {
    "groups": _groups,
    "outside": _outside,
    "works": _works,
}
