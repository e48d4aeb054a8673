"""root: rank 1 takes rank 1 for the root of a broadcast, the others rank 0.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Two ranks give, and one of them takes from nobody."""
    root = 1 if dist.get_rank() == 1 else 0
    dist.broadcast(torch.ones(4), src=root)  # <- here


def twin(dist: Any) -> None:
    """One root."""
    ranks = torch.full((4,), float(dist.get_rank()))
    dist.broadcast(ranks, src=1)
    assert ranks.tolist() == [1.0] * 4
