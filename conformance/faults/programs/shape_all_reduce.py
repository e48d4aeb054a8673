"""shape: rank 1 gives 6 elements to a sum of 4.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Two lengths."""
    length = 6 if dist.get_rank() == 1 else 4
    dist.all_reduce(torch.ones(length))  # <- here


def twin(dist: Any) -> None:
    """One length."""
    ones = torch.ones(6)
    dist.all_reduce(ones)
    assert ones.tolist() == [3.0] * 6
