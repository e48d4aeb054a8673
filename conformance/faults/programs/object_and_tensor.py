"""mismatched object collective: rank 1 gathers a tensor where the others gather objects.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Numbers would be unpickled."""
    if dist.get_rank() == 1:
        dist.all_gather([torch.empty(4) for _ in range(3)], torch.ones(4))  # <- here
    else:
        dist.all_gather_object([None] * 3, {"rank": dist.get_rank()})


def twin(dist: Any) -> None:
    """Objects everywhere, of unequal size."""
    found = [None] * 3
    dist.all_gather_object(found, {"rank": dist.get_rank(), "name": "x" * dist.get_rank()})
    assert found == [{"rank": rank, "name": "x" * rank} for rank in range(3)]
