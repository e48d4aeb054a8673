"""NaN in a sum: rank 2 gives NaN in the part of rank 0, in half precision.

blame: 2
options: find_nan
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Only rank 0 would hold it."""
    parts = torch.ones(3, 1000, dtype=torch.float16)
    if dist.get_rank() == 2:
        parts[0, 7] = float("nan")
    dist.reduce_scatter(torch.empty(1000, dtype=torch.float16), list(parts))  # <- here


def twin(dist: Any) -> None:
    """No NaN anywhere."""
    mine = torch.empty(1000, dtype=torch.float16)
    dist.reduce_scatter(mine, list(torch.ones(3, 1000, dtype=torch.float16)))
    assert mine.eq(3.0).all()
