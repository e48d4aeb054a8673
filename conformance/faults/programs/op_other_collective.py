"""different op: rank 1 broadcasts where the others reduce.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Two collectives meet."""
    ones = torch.ones(4)
    if dist.get_rank() == 1:
        dist.broadcast(ones, src=0)  # <- here
    else:
        dist.all_reduce(ones)


def twin(dist: Any) -> None:
    """Every rank reduces."""
    ones = torch.ones(4)
    dist.all_reduce(ones)
    assert ones.tolist() == [3.0] * 4
