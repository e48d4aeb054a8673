"""use after destroy: rank 1 destroys the pair that both then use.

blame: 1
told: 0 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Rank 0 waits for it there."""
    pair = dist.new_group([0, 1])
    if dist.get_rank() == 1:
        dist.destroy_process_group(pair)
    if dist.get_rank() < 2:
        dist.all_reduce(torch.ones(4), group=pair)  # <- here


def twin(dist: Any) -> None:
    """Both destroy it after its last call."""
    pair = dist.new_group([0, 1])
    ones = torch.ones(4)
    if dist.get_rank() < 2:
        dist.all_reduce(ones, group=pair)
        assert ones.tolist() == [2.0] * 4
        dist.destroy_process_group(pair)
    dist.barrier()
