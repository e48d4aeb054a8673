"""dead rank: rank 1 raises an exception between two calls.

blame: 1
dead: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """The others wait for it in the second."""
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 1:
        raise FloatingPointError("the loss is infinite")
    dist.all_reduce(torch.ones(4))  # <- here


def twin(dist: Any) -> None:
    """It does not raise."""
    ones = torch.ones(4)
    dist.all_reduce(ones)
    dist.all_reduce(ones)
    assert ones.tolist() == [9.0] * 4
