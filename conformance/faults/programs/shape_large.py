"""shape: rank 1 gives one row less of a megabyte than the others.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """The last batch of an epoch, say."""
    rows = 255 if dist.get_rank() == 1 else 256
    dist.all_reduce(torch.ones(rows, 1024))  # <- here


def twin(dist: Any) -> None:
    """As many rows everywhere."""
    ones = torch.ones(256, 1024)
    dist.all_reduce(ones)
    assert ones.eq(3.0).all()
