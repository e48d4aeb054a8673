"""order swapped: rank 1 broadcasts first and reduces second, the others the other way round.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """One rank has the order of two calls reversed."""
    ones, config = torch.ones(4), torch.arange(4)
    if dist.get_rank() == 1:
        dist.broadcast(config, src=0)  # <- here
        dist.all_reduce(ones)
    else:
        dist.all_reduce(ones)
        dist.broadcast(config, src=0)


def twin(dist: Any) -> None:
    """Every rank in one order."""
    ones, config = torch.ones(4), torch.arange(4) * (dist.get_rank() + 1)
    dist.all_reduce(ones)
    dist.broadcast(config, src=0)
    assert ones.tolist() == [3.0] * 4
    assert config.tolist() == [0, 1, 2, 3]
