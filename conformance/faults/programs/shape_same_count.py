"""shape: rank 0 gives (3, 2) where the others give (2, 3), as many elements.

blame: 0
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Rows meet columns."""
    shape = (3, 2) if dist.get_rank() == 0 else (2, 3)
    dist.all_reduce(torch.ones(shape))  # <- here


def twin(dist: Any) -> None:
    """One shape."""
    ones = torch.ones(2, 3)
    dist.all_reduce(ones)
    assert ones.tolist() == [[3.0] * 3] * 2
