"""root: rank 2 reduces to itself, the others to rank 0.

blame: 2
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Two ranks await the sum."""
    root = 2 if dist.get_rank() == 2 else 0
    dist.reduce(torch.ones(4), dst=root)  # <- here


def twin(dist: Any) -> None:
    """One root."""
    ones = torch.ones(4)
    dist.reduce(ones, dst=2)
    assert dist.get_rank() != 2 or ones.tolist() == [3.0] * 4
