"""reduce op: rank 1 takes the maximum where the others sum.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """One rank reduces otherwise."""
    op = dist.ReduceOp.MAX if dist.get_rank() == 1 else dist.ReduceOp.SUM
    dist.all_reduce(torch.ones(4), op=op)  # <- here


def twin(dist: Any) -> None:
    """One op."""
    ranks = torch.full((4,), float(dist.get_rank()))
    dist.all_reduce(ranks, op=dist.ReduceOp.MAX)
    assert ranks.tolist() == [2.0] * 4
