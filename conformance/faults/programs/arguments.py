"""Programs whose ranks pass incompatible arguments to one call."""

from __future__ import annotations

from typing import Any

import torch


def dtype_double(dist: Any) -> None:
    """dtype: rank 2 gathers float64 while the others gather float32.

    blame: 2
    """
    dtype = torch.float64 if dist.get_rank() == 2 else torch.float32  # twice as many bytes
    dist.all_gather([torch.empty(4, dtype=dtype) for _ in range(3)], torch.ones(4, dtype=dtype))  # <- here


def dtype_double_twin(dist: Any) -> None:
    """One dtype."""
    gathered = [torch.empty(4, dtype=torch.float64) for _ in range(3)]
    dist.all_gather(gathered, torch.full((4,), dist.get_rank(), dtype=torch.float64))
    assert [part[0].item() for part in gathered] == [0.0, 1.0, 2.0]


def dtype_integers(dist: Any) -> None:
    """dtype: rank 1 passes int32 to a sum of float32, with the same number of bytes.

    blame: 1
    """
    dtype = torch.int32 if dist.get_rank() == 1 else torch.float32
    dist.all_reduce(torch.ones(4, dtype=dtype))  # <- here


def dtype_integers_twin(dist: Any) -> None:
    """One dtype."""
    ones = torch.ones(4, dtype=torch.int32)
    dist.all_reduce(ones)
    assert ones.tolist() == [3] * 4


def nan_scattered(dist: Any) -> None:
    """NaN in a sum: rank 2 passes NaN in rank 0's part, in half precision.

    blame: 2
    options: find_nan
    """
    parts = torch.ones(3, 1000, dtype=torch.float16)
    if dist.get_rank() == 2:
        parts[0, 7] = float("nan")  # only rank 0 would hold it
    dist.reduce_scatter(torch.empty(1000, dtype=torch.float16), list(parts))  # <- here


def nan_scattered_twin(dist: Any) -> None:
    """No NaN anywhere."""
    mine = torch.empty(1000, dtype=torch.float16)
    dist.reduce_scatter(mine, list(torch.ones(3, 1000, dtype=torch.float16)))
    assert mine.eq(3.0).all()


def nan_sum(dist: Any) -> None:
    """NaN in a sum: rank 1 passes NaN, which would reach every rank.

    blame: 1
    options: find_nan
    """
    gradient = torch.ones(4)
    if dist.get_rank() == 1:
        gradient[2] = float("nan")
    dist.all_reduce(gradient)  # <- here


def nan_sum_twin(dist: Any) -> None:
    """Infinity is a number here."""
    gradient = torch.ones(4)
    gradient[2] = float("inf")
    dist.all_reduce(gradient)
    assert gradient.tolist() == [3.0, 3.0, float("inf"), 3.0]


def reduce_op_in_group(dist: Any) -> None:
    """reduce op: rank 2 takes the maximum while rank 1 sums, in a group that numbers them 1 and 0.

    blame: 2
    affected: 1 2
    """
    pair = dist.new_group([1, 2])  # the group's numbers differ from the global ranks
    op = dist.ReduceOp.MAX if dist.get_rank() == 2 else dist.ReduceOp.SUM
    if dist.get_rank() > 0:
        dist.all_reduce(torch.ones(4), op=op, group=pair)  # <- here


def reduce_op_in_group_twin(dist: Any) -> None:
    """One op."""
    pair = dist.new_group([1, 2])
    ones = torch.ones(4)
    if dist.get_rank() > 0:
        dist.all_reduce(ones, group=pair)
        assert ones.tolist() == [2.0] * 4


def reduce_op_max(dist: Any) -> None:
    """reduce op: rank 1 takes the maximum while the others sum.

    blame: 1
    """
    op = dist.ReduceOp.MAX if dist.get_rank() == 1 else dist.ReduceOp.SUM
    dist.all_reduce(torch.ones(4), op=op)  # <- here


def reduce_op_max_twin(dist: Any) -> None:
    """One op."""
    ranks = torch.full((4,), float(dist.get_rank()))
    dist.all_reduce(ranks, op=dist.ReduceOp.MAX)
    assert ranks.tolist() == [2.0] * 4


def reduce_op_scattered(dist: Any) -> None:
    """reduce op: rank 2 multiplies while the others sum, in a reduce_scatter.

    blame: 2
    """
    op = dist.ReduceOp.PRODUCT if dist.get_rank() == 2 else dist.ReduceOp.SUM
    dist.reduce_scatter(torch.empty(2), [torch.ones(2) for _ in range(3)], op=op)  # <- here


def reduce_op_scattered_twin(dist: Any) -> None:
    """One op."""
    part = torch.empty(2)
    dist.reduce_scatter(part, [torch.full((2,), float(rank + 1)) for rank in range(3)])
    assert part.tolist() == [3.0 * (dist.get_rank() + 1)] * 2


def root_broadcast(dist: Any) -> None:
    """root: rank 1 uses rank 1 as the root of a broadcast, the others use rank 0.

    blame: 1
    """
    root = 1 if dist.get_rank() == 1 else 0  # two ranks send, and neither receives
    dist.broadcast(torch.ones(4), src=root)  # <- here


def root_broadcast_twin(dist: Any) -> None:
    """One root."""
    ranks = torch.full((4,), float(dist.get_rank()))
    dist.broadcast(ranks, src=1)
    assert ranks.tolist() == [1.0] * 4


def root_reduce(dist: Any) -> None:
    """root: rank 2 reduces to itself, the others to rank 0.

    blame: 2
    """
    root = 2 if dist.get_rank() == 2 else 0  # two ranks expect the sum
    dist.reduce(torch.ones(4), dst=root)  # <- here


def root_reduce_twin(dist: Any) -> None:
    """One root."""
    ones = torch.ones(4)
    dist.reduce(ones, dst=2)
    assert dist.get_rank() != 2 or ones.tolist() == [3.0] * 4


def shape_all_gather(dist: Any) -> None:
    """shape: rank 2 gathers 2 elements while the others gather 3.

    blame: 2
    """
    length = 2 if dist.get_rank() == 2 else 3
    dist.all_gather([torch.empty(length) for _ in range(3)], torch.ones(length))  # <- here


def shape_all_gather_twin(dist: Any) -> None:
    """One length."""
    gathered = [torch.empty(3) for _ in range(3)]
    dist.all_gather(gathered, torch.full((3,), float(dist.get_rank())))
    assert [part.tolist() for part in gathered] == [[0.0] * 3, [1.0] * 3, [2.0] * 3]


def shape_all_reduce(dist: Any) -> None:
    """shape: rank 1 passes 6 elements to a sum of 4.

    blame: 1
    """
    length = 6 if dist.get_rank() == 1 else 4
    dist.all_reduce(torch.ones(length))  # <- here


def shape_all_reduce_twin(dist: Any) -> None:
    """One length."""
    ones = torch.ones(6)
    dist.all_reduce(ones)
    assert ones.tolist() == [3.0] * 6


def shape_broadcast(dist: Any) -> None:
    """shape: rank 2 expects 6 elements of a broadcast of 4.

    blame: 2
    """
    if dist.get_rank() == 2:  # its last elements would stay unchanged
        dist.broadcast(torch.zeros(6), src=0)  # <- here
    else:
        dist.broadcast(torch.ones(4), src=0)


def shape_broadcast_twin(dist: Any) -> None:
    """The length of the broadcast."""
    ones = torch.ones(4) if dist.get_rank() == 0 else torch.zeros(4)
    dist.broadcast(ones, src=0)
    assert ones.tolist() == [1.0] * 4


def shape_large(dist: Any) -> None:
    """shape: rank 1 passes one row fewer than the others, of about a megabyte.

    blame: 1
    """
    rows = 255 if dist.get_rank() == 1 else 256  # for example, the last batch of an epoch
    dist.all_reduce(torch.ones(rows, 1024))  # <- here


def shape_large_twin(dist: Any) -> None:
    """The same number of rows everywhere."""
    ones = torch.ones(256, 1024)
    dist.all_reduce(ones)
    assert ones.eq(3.0).all()


def shape_same_count(dist: Any) -> None:
    """shape: rank 0 passes shape (3, 2) while the others pass (2, 3), with the same number of elements.

    blame: 0
    """
    shape = (3, 2) if dist.get_rank() == 0 else (2, 3)
    dist.all_reduce(torch.ones(shape))  # <- here


def shape_same_count_twin(dist: Any) -> None:
    """One shape."""
    ones = torch.ones(2, 3)
    dist.all_reduce(ones)
    assert ones.tolist() == [[3.0] * 3] * 2


def splits_list(dist: Any) -> None:
    """split sizes: rank 2 sends rank 0 a longer part than rank 0 expects.

    blame: 2
    """
    parts = [torch.ones(2) for _ in range(3)]
    if dist.get_rank() == 2:
        parts[0] = torch.ones(4)
    dist.all_to_all([torch.empty(2) for _ in range(3)], parts)  # <- here


def splits_list_twin(dist: Any) -> None:
    """Parts of the expected length."""
    outputs = [torch.empty(2) for _ in range(3)]
    dist.all_to_all(outputs, [torch.full((2,), float(rank)) for rank in range(3)])
    assert [part.tolist() for part in outputs] == [[float(dist.get_rank())] * 2] * 3


def splits_sum(dist: Any) -> None:
    """split sizes: rank 1 sends only 5 of its 6 elements.

    blame: 1
    """
    given = [2, 2, 1] if dist.get_rank() == 1 else [2, 2, 2]  # the sum is not 6, which one rank alone can notice
    dist.all_to_all_single(torch.empty(6), torch.ones(6), [2, 2, 2], given)  # <- here


def splits_sum_twin(dist: Any) -> None:
    """Every element is sent."""
    output = torch.empty(6)
    dist.all_to_all_single(output, torch.full((6,), float(dist.get_rank())), [2, 2, 2], [2, 2, 2])
    assert output.tolist() == [0.0, 0.0, 1.0, 1.0, 2.0, 2.0]


def splits_unmet(dist: Any) -> None:
    """split sizes: rank 1 expects 1 element from every rank, but each sends 2.

    blame: 1
    """
    rank = dist.get_rank()
    awaited = [1, 1, 1] if rank == 1 else [rank + 1] * 3
    dist.all_to_all_single(torch.empty(sum(awaited)), torch.ones(6), awaited, [1, 2, 3])  # <- here


def splits_unmet_twin(dist: Any) -> None:
    """Expected and sent lengths agree."""
    mine = torch.arange(6.0)
    given = [1, 2, 3]
    awaited = [dist.get_rank() + 1] * 3
    output = torch.empty(sum(awaited))
    dist.all_to_all_single(output, mine, awaited, given)
    start = [0, 1, 3][dist.get_rank()]
    assert output.tolist() == mine[start : start + awaited[0]].tolist() * 3
