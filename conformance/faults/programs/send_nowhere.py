"""send to a rank that does not exist: rank 1 sends to rank 7 of 3 what rank 2 awaits.

blame: 1
told: 1 2
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """There is no such rank."""
    if dist.get_rank() == 1:
        dist.send(torch.ones(4), dst=7)  # <- here
    if dist.get_rank() == 2:
        dist.recv(torch.empty(4), src=1)


def twin(dist: Any) -> None:
    """To a rank that is there."""
    got = torch.empty(4)
    if dist.get_rank() == 1:
        dist.send(torch.ones(4), dst=2)
    if dist.get_rank() == 2:
        dist.recv(got, src=1)
        assert got.tolist() == [1.0] * 4
