"""dtype: rank 1 receives as int32 what rank 0 sends as float32.

blame: 1
told: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Bits of floats land in integers."""
    if dist.get_rank() == 0:
        dist.send(torch.ones(4), dst=1)
    if dist.get_rank() == 1:
        dist.recv(torch.empty(4, dtype=torch.int32), src=0)  # <- here


def twin(dist: Any) -> None:
    """One dtype."""
    got = torch.empty(4)
    if dist.get_rank() == 0:
        dist.send(torch.ones(4), dst=1)
    if dist.get_rank() == 1:
        dist.recv(got, src=0)
        assert got.tolist() == [1.0] * 4
