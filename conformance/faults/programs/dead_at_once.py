"""dead rank: rank 1 ends its process without any of what Python does at an end.

blame: 1
dead: 1
on: processes torch torch+detail
"""

from __future__ import annotations

import os
from typing import Any

import torch


def fault(dist: Any) -> None:
    """As a fault in native code would."""
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 1:
        os._exit(3)
    dist.all_reduce(torch.ones(4))  # <- here


def twin(dist: Any) -> None:
    """It lives."""
    ones = torch.ones(4)
    dist.all_reduce(ones)
    dist.all_reduce(ones)
    assert ones.tolist() == [9.0] * 4
