"""missing rank: rank 2 has a batch less than the others.

blame: 2
told: 0 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Loops of unequal length."""
    for _ in range(3 if dist.get_rank() == 2 else 4):
        dist.all_reduce(torch.ones(4))  # <- here


def twin(dist: Any) -> None:
    """As many steps everywhere."""
    ones = torch.ones(4)
    for _ in range(3):
        dist.all_reduce(ones)
    assert ones.tolist() == [27.0] * 4
