"""use after destroy: every rank leaves the world and reduces.

blame: 0 1 2
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """There is no group any more."""
    dist.all_reduce(torch.ones(4))
    dist.destroy_process_group()
    dist.all_reduce(torch.ones(4))  # <- here


def twin(dist: Any) -> None:
    """It leaves after the last call."""
    ones = torch.ones(4)
    dist.all_reduce(ones)
    assert ones.tolist() == [3.0] * 4
    dist.destroy_process_group()
    assert not dist.is_initialized()
