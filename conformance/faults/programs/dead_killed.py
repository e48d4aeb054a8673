"""dead rank: rank 0 is killed between two calls.

blame: 0
dead: 0
on: processes torch torch+detail
"""

from __future__ import annotations

import os
import signal
from typing import Any

import torch


def fault(dist: Any) -> None:
    """As the system does when memory is short."""
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    dist.all_reduce(torch.ones(4))  # <- here


def twin(dist: Any) -> None:
    """It lives."""
    ones = torch.ones(4)
    dist.all_reduce(ones)
    dist.all_reduce(ones)
    assert ones.tolist() == [9.0] * 4
