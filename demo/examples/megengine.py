"""MegEngine's docstrings, ``megengine.functional.distributed``: twelve operations on two ranks."""

from __future__ import annotations

import torch

import collshim
import collshim.megengine.distributed as dist
import collshim.megengine.functional as F
from collshim.demo.example import Example, Names, Sheet

OWN_RANK = "input = tensor([rank])"
PAIR = "input = tensor([0, 1])"
PAIR_PER_RANK = "input = tensor([0, 1]) + rank * 2"
FLOATS_PER_RANK = "input = arange(2.) + 1 + 2 * rank"

SEND_AND_RECV = """if rank == 0:
    data = F.distributed.remote_send(data, 1)
else:
    data = F.distributed.remote_recv(0)"""


def start() -> Names:
    """Return the names that a script has after its imports and ``init_process_group``; tensors are torch's."""
    here = collshim.current()
    dist.init_process_group("localhost", 8000, here.size, here.rank, device=here.rank)
    names = {"F": F, "Group": dist.Group, "rank": dist.get_rank()}
    return {**names, "tensor": torch.tensor, "arange": torch.arange}


def _call(operation: str, before: str, more: str = "") -> Example:
    call = f"F.distributed.{operation}(input{more})"
    return Example(name=call, before=before, call=call)


def _by_root(operation: str, before: str) -> list[Example]:
    """Return the call in a group in the order of the ranks, and in reverse order, which makes rank 1 the root."""
    return [_call(operation, before), _call(operation, before, ", Group([1, 0])")]


def _all_reduced(operation: str) -> list[Example]:
    more = (", group=Group([0, 1])", ', device="xpu0:1"')
    return [_call(operation, FLOATS_PER_RANK, each) for each in more]


SHEETS = (
    Sheet(
        framework="MegEngine",
        title="megengine.functional.distributed",
        setting="worlds of two ranks: 0 and 1 are shown, 2 and 3 must agree",
        ranks=2,
        start=start,
        examples=(
            *_by_root("reduce_sum", OWN_RANK),
            *_by_root("broadcast", OWN_RANK),
            *_by_root("all_gather", OWN_RANK),
            *_by_root("reduce_scatter_sum", PAIR),
            *_all_reduced("all_reduce_sum"),
            *_all_reduced("all_reduce_max"),
            *_all_reduced("all_reduce_min"),
            *_by_root("gather", OWN_RANK),
            *_by_root("scatter", PAIR_PER_RANK),
            *_by_root("all_to_all", PAIR_PER_RANK),
            Example(
                name="remote_send and remote_recv",
                before="data = tensor(1) if rank == 0 else None",
                given="data",
                call=SEND_AND_RECV,
                back="data",
            ),
        ),
    ),
)
