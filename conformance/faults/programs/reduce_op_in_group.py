"""reduce op: rank 2 takes the maximum where rank 1 sums, in a group whose own numbers of them are 1 and 0.

blame: 2
told: 1 2
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Numbers in the group are not those that a user knows the ranks by."""
    pair = dist.new_group([1, 2])
    op = dist.ReduceOp.MAX if dist.get_rank() == 2 else dist.ReduceOp.SUM
    if dist.get_rank() > 0:
        dist.all_reduce(torch.ones(4), op=op, group=pair)  # <- here


def twin(dist: Any) -> None:
    """One op."""
    pair = dist.new_group([1, 2])
    ones = torch.ones(4)
    if dist.get_rank() > 0:
        dist.all_reduce(ones, group=pair)
        assert ones.tolist() == [2.0] * 4
