"""shape: rank 2 awaits 6 elements of a broadcast of 4.

blame: 2
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Its last elements would stay as they were."""
    if dist.get_rank() == 2:
        dist.broadcast(torch.zeros(6), src=0)  # <- here
    else:
        dist.broadcast(torch.ones(4), src=0)


def twin(dist: Any) -> None:
    """The length that comes."""
    ones = torch.ones(4) if dist.get_rank() == 0 else torch.zeros(4)
    dist.broadcast(ones, src=0)
    assert ones.tolist() == [1.0] * 4
