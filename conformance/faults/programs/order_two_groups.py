"""order swapped: rank 1 calls in its pair first and in the world second, the others the other way round.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Ranks 0 and 1 wait for each other, each in another group."""
    pair = dist.new_group([0, 1])
    ones = torch.ones(4)
    if dist.get_rank() == 1:
        dist.all_reduce(ones, group=pair)  # <- here
        dist.all_reduce(ones)
    else:
        dist.all_reduce(ones)
        dist.all_reduce(ones, group=pair)


def twin(dist: Any) -> None:
    """Every rank in one order."""
    pair = dist.new_group([0, 1])
    ones = torch.ones(4)
    dist.all_reduce(ones)
    if dist.get_rank() < 2:
        dist.all_reduce(ones, group=pair)
    assert ones.tolist() == ([3.0] * 4 if dist.get_rank() == 2 else [6.0] * 4)
