"""Large broadcasts to many ranks, which read shares of the tensor from each other."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch

from collshim.transports.shared_memory import far
from tests.engine.worlds import on_ranks, world
from tests.robustness.scripts import await_ends, ranks

pytestmark = pytest.mark.processes

COUNT = 140_001


def _as_if_each_rank_had_a_processor() -> list[int]:
    """Let this process read shares; return a list that gets an entry for each share that Python makes."""
    made, make = list[int](), far.FarTransfer._make_share

    def counted(transfer: Any) -> None:
        made.append(transfer.number)
        make(transfer)

    transport: Any = world()._transport
    transport.shared.has_processors = True
    replaced: Any = far.FarTransfer
    replaced._make_share = counted
    return made


def broadcasts(dtype: torch.dtype) -> tuple[int, list[bool]]:
    """Broadcast from each rank in three forms; return how many shares Python made, and what was right."""
    made, found = _as_if_each_rank_had_a_processor(), list[bool]()
    comm = world()
    for number in range(6):
        for root in range(comm.size):
            result = (torch.arange(COUNT) % 100 + number).to(dtype)
            own = result.clone() if comm.rank == root else torch.zeros(COUNT, dtype=dtype)
            apart = torch.zeros(COUNT, dtype=dtype)
            found.append(torch.equal(comm.broadcast(own, root=root).wait(), result))
            comm.broadcast(own, root=root, out=apart).wait()
            comm.broadcast(own, root=root, out=own).wait()
            found += [torch.equal(apart, result), torch.equal(own, result)]
    return len(made), found


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bool])
@pytest.mark.parametrize("size", [4, 5])
def test_ranks_get_the_roots_tensor(size: int, dtype: torch.dtype) -> None:
    for made, found in on_ranks(partial(broadcasts, dtype), size, "processes", within=120):
        assert made > 0
        assert found == [True] * (18 * size)


LOSES_RANK_2 = """
import os, torch, collshim
comm = collshim.current().communicator
comm._transport.shared.has_processors = True
x = torch.zeros(140_001)
for _ in range(4):
    comm.broadcast(x, root=0, out=x).wait()
if comm.rank == 2:
    comm.broadcast(x, root=0, out=x)
    os._exit(9)
try:
    comm.broadcast(x, root=0, out=x).wait()
    comm.broadcast(x, root=0, out=x).wait()
except collshim.PeerError as error:
    print("rank 2" in str(error), flush=True)
os._exit(0)
"""


def test_rank_that_ends_before_it_makes_its_share_is_named() -> None:
    with ranks(LOSES_RANK_2, 4) as started:
        outputs = [end.out.strip() for end in await_ends(started)]
    assert outputs == ["True", "True", "", "True"]


def broadcasts_of_unknown_shape() -> tuple[int, bool]:
    made, comm = _as_if_each_rank_had_a_processor(), world()
    result = torch.arange(COUNT)
    found: Any = comm.broadcast(result if comm.rank == 0 else None, root=0, discovers=True).wait()
    return len(made), torch.equal(found, result)


def test_tensor_of_unknown_shape_is_read_from_the_root() -> None:
    assert on_ranks(broadcasts_of_unknown_shape, 4, "processes") == [(0, True)] * 4


def keeps_a_share() -> float:
    """Read a broadcast's shares while the root changes its tensor as soon as it may."""
    _as_if_each_rank_had_a_processor()
    comm, total = world(), 0.0
    for number in range(40):
        own = torch.full((COUNT,), float(number) if comm.rank == 0 else -1.0)
        comm.broadcast(own, root=0, out=own).wait()
        total += own.min().item() + own.max().item()
        own.fill_(-2.0)
    return total


def test_no_rank_reads_a_share_that_its_owner_has_changed() -> None:
    assert on_ranks(keeps_a_share, 4, "processes", within=120) == [2.0 * sum(range(40))] * 4
