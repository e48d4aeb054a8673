"""group: rank 1 makes a group of all three, the others one of two.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Two groups, neither of which is ever complete."""
    ranks = [0, 1, 2] if dist.get_rank() == 1 else [0, 1]
    dist.all_reduce(torch.ones(4), group=dist.new_group(ranks))  # <- here
    dist.barrier()


def twin(dist: Any) -> None:
    """One group."""
    group = dist.new_group([0, 1])
    ones = torch.ones(4)
    if dist.get_rank() < 2:
        dist.all_reduce(ones, group=group)
        assert ones.tolist() == [2.0] * 4
    dist.barrier()
