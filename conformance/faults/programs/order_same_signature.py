"""order swapped: rank 1 reduces two arrays of one shape in the other order.

blame: 1
limit: calls of one signature look alike, and ranks may well make the same call from different lines
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Each gets a sum of both arrays."""
    first, second = torch.ones(4), torch.full((4,), 2.0)
    mine = (second, first) if dist.get_rank() == 1 else (first, second)
    dist.all_reduce(mine[0])  # <- here
    dist.all_reduce(mine[1])


def twin(dist: Any) -> None:
    """Every rank in one order."""
    first, second = torch.ones(4), torch.full((4,), 2.0)
    dist.all_reduce(first)
    dist.all_reduce(second)
    assert first.tolist() == [3.0] * 4
    assert second.tolist() == [6.0] * 4
