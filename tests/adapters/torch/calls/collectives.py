"""Calls that torch over gloo answers: works, groups, and what is warned of outside of them."""

from __future__ import annotations

from typing import Any

import torch

from tests.adapters.torch.calls.given import SIZE, Call, tensor_of


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
