"""recv buffer too small: rank 1 has room for 4 of the 6 elements that rank 0 sends.

blame: 1
told: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """The rest would lie behind the buffer."""
    if dist.get_rank() == 0:
        dist.send(torch.ones(6), dst=1)
    if dist.get_rank() == 1:
        dist.recv(torch.empty(4), src=0)  # <- here


def twin(dist: Any) -> None:
    """Room for all."""
    got = torch.empty(6)
    if dist.get_rank() == 0:
        dist.send(torch.ones(6), dst=1)
    if dist.get_rank() == 1:
        dist.recv(got, src=0)
        assert got.tolist() == [1.0] * 6
