"""dead rank: rank 2 exits between two calls.

blame: 2
dead: 2
"""

from __future__ import annotations

import sys
from typing import Any

import torch


def fault(dist: Any) -> None:
    """The others wait for it in the second."""
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 2:
        sys.exit(3)
    dist.all_reduce(torch.ones(4))  # <- here


def twin(dist: Any) -> None:
    """It does not exit."""
    ones = torch.ones(4)
    dist.all_reduce(ones)
    dist.all_reduce(ones)
    assert ones.tolist() == [9.0] * 4
