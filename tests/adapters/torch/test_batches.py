"""P2POp and batch_isend_irecv."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import collshim.torch.distributed as dist
from tests.adapters.conftest import Refused, Run, each_of


@pytest.mark.ranks(3)
def test_batch_in_any_order_does_not_deadlock() -> None:
    mine, size = dist.get_rank(), dist.get_world_size()
    received = [torch.full((10_000,), float(mine)) for _ in range(size)]
    peers = [peer for peer in range(size) if peer != mine]
    ops = [dist.P2POp(dist.isend, torch.full((10_000,), float(mine)), peer) for peer in peers]
    ops += [dist.P2POp(dist.irecv, received[peer], peer) for peer in reversed(peers)]
    works = dist.batch_isend_irecv(ops)
    assert all(work.wait() and work.is_completed() for work in works)
    assert [int(tensor[-1]) for tensor in received] == [0, 1, 2]


def test_messages_match_by_tag_then_order(run: Run) -> None:
    def rank() -> Any:
        values = [torch.full((1,), float(value)) for value in range(3)]
        if dist.get_rank() == 0:
            ops = [dist.P2POp(dist.isend, value, 1, tag=tag) for value, tag in zip(values, (5, 5, 6), strict=True)]
        else:
            ops = [dist.P2POp(dist.irecv, value, 0, tag=tag) for value, tag in zip(values, (6, 5, 5), strict=True)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return [value.item() for value in values]

    assert run(rank, 2)[1] == [2.0, 0.0, 1.0]


@each_of(3, gives=[None, ([2, 2], [0, 0], [2]), ([1, 1], [1, 1], [1])])
def test_peers_are_global_or_group_ranks() -> Any:
    group = dist.new_group([2, 1], sort_ranks=False)
    if group == -100:
        return None
    array, place = np.array([dist.get_rank()]), dist.get_rank(group)
    ops = [
        dist.P2POp(dist.isend, array, group=group, group_peer=1 - place),
        dist.P2POp(dist.irecv, received := np.array([0]), 3 - dist.get_rank(), group),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    return [op.peer for op in ops], [op.group_peer for op in ops], received.tolist()


@each_of(1, gives=[1.0])
def test_rank_can_write_to_itself() -> float:
    ops = [dist.P2POp(dist.irecv, found := torch.zeros(1), 0), dist.P2POp(dist.isend, torch.ones(1), 0)]
    assert all(work.wait() for work in dist.batch_isend_irecv(ops))
    return found.item()


@each_of(1, gives=[True])
def test_torch_isend_is_accepted() -> bool:
    return dist.P2POp(torch.distributed.isend, torch.ones(1), 0).op is dist.isend


def test_p2pop_repr_shows_its_peers(run: Run) -> None:
    def rank() -> str:
        return repr(dist.P2POp(dist.irecv, torch.ones(2), 1))

    wanted = "P2POp(irecv pg=0, group_src=1, group_dst={},  torch.Size([2]), torch.float32)"
    assert run(rank, 2) == [wanted.format(0), wanted.format(1)]


def test_default_group_peer_is_validated_when_posted(run: Run) -> None:
    assert run(lambda: dist.P2POp(dist.isend, torch.ones(1), group_peer=99).peer, 1) == [99]


def test_invalid_batches_are_refused(run: Run, refused: Refused) -> None:
    one = torch.ones(1)

    def rank() -> Any:
        first, second = dist.P2POp(dist.isend, one, 0), dist.P2POp(dist.isend, one, 0, dist.new_group())
        bad = dist.P2POp(dist.isend, one, 9)
        refused(ValueError, lambda: dist.P2POp(dist.broadcast, one, 0), "^Invalid ``op``")
        refused(TypeError, lambda: dist.P2POp(dist.isend, [1.0], 0), "type torch.Tensor")
        refused(ValueError, lambda: dist.P2POp(dist.isend, one, 0, -100), "not registered")
        refused(
            ValueError,
            lambda: dist.P2POp(dist.isend, one, group_peer=9, group=second.group),
            "Group rank 9 is not part",
        )
        refused(ValueError, lambda: dist.batch_isend_irecv([first, second]), "All ops need to use the same group")
        refused(ValueError, lambda: dist.batch_isend_irecv([1]), "^Invalid ``p2p_op_list``")  # type: ignore[list-item]
        refused(IndexError, lambda: dist.batch_isend_irecv([]), "list index out of range")
        refused(RuntimeError, lambda: dist.batch_isend_irecv([first, bad]), "destination is 9")
        with pytest.raises(RuntimeError):
            dist.batch_isend_irecv([bad])
        work = dist.irecv(received := torch.zeros(1), 0)
        return (
            work is not None and work.is_completed(),
            received.item(),
        )  # the valid part of the refused batch was not sent

    assert run(rank, 1) == [(False, 0.0)]
