"""missing rank: rank 1 skips a reduction and is done.

blame: 1
told: 0 2
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """A branch that depends on the rank."""
    if dist.get_rank() != 1:
        dist.all_reduce(torch.ones(4))  # <- here


def twin(dist: Any) -> None:
    """Every rank comes."""
    ones = torch.ones(4)
    dist.all_reduce(ones)
    assert ones.tolist() == [3.0] * 4
