"""use after destroy: rank 1 leaves the world before the others are done.

blame: 1
told: 0 1 2
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """It calls all the same, and the others wait for it."""
    if dist.get_rank() == 1:
        dist.destroy_process_group()
    dist.all_reduce(torch.ones(4))  # <- here


def twin(dist: Any) -> None:
    """All leave after the last call."""
    ones = torch.ones(4)
    dist.all_reduce(ones)
    assert ones.tolist() == [3.0] * 4
    dist.destroy_process_group()
