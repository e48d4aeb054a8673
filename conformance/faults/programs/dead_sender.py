"""dead rank: rank 0 is killed before it sends what rank 1 awaits.

blame: 0
dead: 0
told: 1
on: processes torch torch+detail
"""

from __future__ import annotations

import os
import signal
from typing import Any

import torch


def fault(dist: Any) -> None:
    """Nothing comes."""
    if dist.get_rank() == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    if dist.get_rank() == 1:
        dist.recv(torch.empty(4), src=0)  # <- here


def twin(dist: Any) -> None:
    """It lives to send."""
    got = torch.empty(4)
    if dist.get_rank() == 0:
        dist.send(torch.ones(4), dst=1)
    if dist.get_rank() == 1:
        dist.recv(got, src=0)
        assert got.tolist() == [1.0] * 4
