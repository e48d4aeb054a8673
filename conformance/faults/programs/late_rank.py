"""late rank: rank 1 comes when the deadline of the others has passed.

blame: 1
"""

from __future__ import annotations

import time
from typing import Any

import torch


def fault(dist: Any) -> None:
    """The others have given up."""
    if dist.get_rank() == 1:
        time.sleep(2.4)
    dist.all_reduce(torch.ones(4))  # <- here


def twin(dist: Any) -> None:
    """It comes in time."""
    if dist.get_rank() == 1:
        time.sleep(0.4)
    ones = torch.ones(4)
    dist.all_reduce(ones)
    assert ones.tolist() == [3.0] * 4
