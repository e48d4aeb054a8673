"""NaN in a sum: rank 1 gives NaN, every rank would hold it.

blame: 1
options: find_nan
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Found where it comes from."""
    gradient = torch.ones(4)
    if dist.get_rank() == 1:
        gradient[2] = float("nan")
    dist.all_reduce(gradient)  # <- here


def twin(dist: Any) -> None:
    """Infinity is a number here."""
    gradient = torch.ones(4)
    gradient[2] = float("inf")
    dist.all_reduce(gradient)
    assert gradient.tolist() == [3.0, 3.0, float("inf"), 3.0]
