"""Programs whose ranks make different calls, or calls in a different order or group."""

from __future__ import annotations

from typing import Any

import torch


def group_forgotten(dist: Any) -> None:
    """group: rank 1 omits group= and reduces in the world, rank 0 in the pair.

    blame: 1
    """
    pair = dist.new_group([0, 1])
    ones = torch.ones(4)
    if dist.get_rank() == 0:
        dist.all_reduce(ones, group=pair)
    if dist.get_rank() == 1:  # its reduction meets rank 2 at the barrier, and never rank 0
        dist.all_reduce(ones)  # <- here
    dist.barrier()


def group_forgotten_twin(dist: Any) -> None:
    """Both in the pair."""
    pair = dist.new_group([0, 1])
    ones = torch.ones(4)
    if dist.get_rank() < 2:
        dist.all_reduce(ones, group=pair)
        assert ones.tolist() == [2.0] * 4
    dist.barrier()


def group_members(dist: Any) -> None:
    """group: rank 1 makes a group of all three ranks, the others a group of two.

    blame: 1
    """
    ranks = [0, 1, 2] if dist.get_rank() == 1 else [0, 1]  # two groups, neither of which is ever complete
    dist.all_reduce(torch.ones(4), group=dist.new_group(ranks))  # <- here
    dist.barrier()


def group_members_twin(dist: Any) -> None:
    """One group."""
    group = dist.new_group([0, 1])
    ones = torch.ones(4)
    if dist.get_rank() < 2:
        dist.all_reduce(ones, group=group)
        assert ones.tolist() == [2.0] * 4
    dist.barrier()


def object_and_tensor(dist: Any) -> None:
    """mismatched object collective: rank 1 gathers a tensor while the others gather objects.

    blame: 1
    """
    if dist.get_rank() == 1:  # numbers would be unpickled
        dist.all_gather([torch.empty(4) for _ in range(3)], torch.ones(4))  # <- here
    else:
        dist.all_gather_object([None] * 3, {"rank": dist.get_rank()})


def object_and_tensor_twin(dist: Any) -> None:
    """Objects everywhere, of unequal size."""
    found = [None] * 3
    dist.all_gather_object(found, {"rank": dist.get_rank(), "name": "x" * dist.get_rank()})
    assert found == [{"rank": rank, "name": "x" * rank} for rank in range(3)]


def object_count(dist: Any) -> None:
    """mismatched object collective: rank 1 expects two objects of a broadcast of three.

    blame: 1
    affected: 1
    """
    found = [None] * (2 if dist.get_rank() == 1 else 3)  # one object would be lost
    dist.broadcast_object_list(["a", "b", "c"] if dist.get_rank() == 0 else found, src=0)  # <- here


def object_count_twin(dist: Any) -> None:
    """As many objects as are broadcast."""
    found = ["a", "b", "c"] if dist.get_rank() == 0 else [None] * 3
    dist.broadcast_object_list(found, src=0)
    assert found == ["a", "b", "c"]


def object_other_collective(dist: Any) -> None:
    """mismatched object collective: rank 2 gathers objects while the others broadcast them.

    blame: 2
    """
    if dist.get_rank() == 2:
        dist.all_gather_object([None] * 3, "config")  # <- here
    else:
        dist.broadcast_object_list(["config"], src=0)


def object_other_collective_twin(dist: Any) -> None:
    """Every rank broadcasts."""
    found = ["config"] if dist.get_rank() == 0 else [None]
    dist.broadcast_object_list(found, src=0)
    assert found == ["config"]


def op_async(dist: Any) -> None:
    """different op: rank 1 posts a broadcast while the others post a reduction, and all wait later.

    blame: 1
    """
    ones = torch.ones(4)
    if dist.get_rank() == 1:
        broadcast = dist.broadcast(ones, src=0, async_op=True)  # <- here
        broadcast.wait()  # the error names the line of the post, not this one
    else:
        reduction = dist.all_reduce(ones, async_op=True)
        reduction.wait()


def op_async_twin(dist: Any) -> None:
    """Two reductions in progress, waited for in the opposite order."""
    ones, more = torch.ones(4), torch.full((4,), 2.0)
    works = [dist.all_reduce(ones, async_op=True), dist.all_reduce(more, async_op=True)]
    for work in reversed(works):
        work.wait()
    assert ones.tolist() == [3.0] * 4
    assert more.tolist() == [6.0] * 4


def op_barrier(dist: Any) -> None:
    """different op: rank 2 calls a barrier while the others gather.

    blame: 2
    """
    gathered = [torch.empty(4) for _ in range(3)]
    if dist.get_rank() == 2:
        dist.barrier()  # <- here
    else:
        dist.all_gather(gathered, torch.ones(4))


def op_barrier_twin(dist: Any) -> None:
    """Every rank gathers, then calls the barrier."""
    gathered = [torch.empty(4) for _ in range(3)]
    dist.all_gather(gathered, torch.full((4,), dist.get_rank()).float())
    dist.barrier()
    assert [part[0].item() for part in gathered] == [0.0, 1.0, 2.0]


def op_other_collective(dist: Any) -> None:
    """different op: rank 1 broadcasts while the others reduce.

    blame: 1
    """
    ones = torch.ones(4)
    if dist.get_rank() == 1:
        dist.broadcast(ones, src=0)  # <- here
    else:
        dist.all_reduce(ones)


def op_other_collective_twin(dist: Any) -> None:
    """Every rank reduces."""
    ones = torch.ones(4)
    dist.all_reduce(ones)
    assert ones.tolist() == [3.0] * 4


def order_same_signature(dist: Any) -> None:
    """order swapped: rank 1 reduces two arrays of the same shape in the opposite order.

    blame: 1
    limit: the calls have the same signature, and ranks may make the same call from different lines
    """
    first, second = torch.ones(4), torch.full((4,), 2.0)
    mine = (second, first) if dist.get_rank() == 1 else (first, second)  # each sum mixes both arrays
    dist.all_reduce(mine[0])  # <- here
    dist.all_reduce(mine[1])


def order_same_signature_twin(dist: Any) -> None:
    """Every rank in one order."""
    first, second = torch.ones(4), torch.full((4,), 2.0)
    dist.all_reduce(first)
    dist.all_reduce(second)
    assert first.tolist() == [3.0] * 4
    assert second.tolist() == [6.0] * 4


def order_two_collectives(dist: Any) -> None:
    """order swapped: rank 1 broadcasts first and reduces second, the others the other way round.

    blame: 1
    """
    ones, config = torch.ones(4), torch.arange(4)
    if dist.get_rank() == 1:
        dist.broadcast(config, src=0)  # <- here
        dist.all_reduce(ones)
    else:
        dist.all_reduce(ones)
        dist.broadcast(config, src=0)


def order_two_collectives_twin(dist: Any) -> None:
    """Every rank in one order."""
    ones, config = torch.ones(4), torch.arange(4) * (dist.get_rank() + 1)
    dist.all_reduce(ones)
    dist.broadcast(config, src=0)
    assert ones.tolist() == [3.0] * 4
    assert config.tolist() == [0, 1, 2, 3]


def order_two_groups(dist: Any) -> None:
    """order swapped: rank 1 calls in its pair first and in the world second, the others the other way round.

    blame: 1
    """
    pair = dist.new_group([0, 1])
    ones = torch.ones(4)
    if dist.get_rank() == 1:  # ranks 0 and 1 wait for each other, in different groups
        dist.all_reduce(ones, group=pair)  # <- here
        dist.all_reduce(ones)
    else:
        dist.all_reduce(ones)
        dist.all_reduce(ones, group=pair)


def order_two_groups_twin(dist: Any) -> None:
    """Every rank in one order."""
    pair = dist.new_group([0, 1])
    ones = torch.ones(4)
    dist.all_reduce(ones)
    if dist.get_rank() < 2:
        dist.all_reduce(ones, group=pair)
    assert ones.tolist() == ([3.0] * 4 if dist.get_rank() == 2 else [6.0] * 4)
