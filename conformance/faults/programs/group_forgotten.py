"""group: rank 1 forgets group= and reduces in the world, rank 0 in the pair.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Its reduction meets rank 2 at the barrier, and never rank 0."""
    pair = dist.new_group([0, 1])
    ones = torch.ones(4)
    if dist.get_rank() == 0:
        dist.all_reduce(ones, group=pair)
    if dist.get_rank() == 1:
        dist.all_reduce(ones)  # <- here
    dist.barrier()


def twin(dist: Any) -> None:
    """Both in the pair."""
    pair = dist.new_group([0, 1])
    ones = torch.ones(4)
    if dist.get_rank() < 2:
        dist.all_reduce(ones, group=pair)
        assert ones.tolist() == [2.0] * 4
    dist.barrier()
