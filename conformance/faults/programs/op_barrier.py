"""different op: rank 2 comes to a barrier where the others gather.

blame: 2
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """A barrier meets a gather."""
    gathered = [torch.empty(4) for _ in range(3)]
    if dist.get_rank() == 2:
        dist.barrier()  # <- here
    else:
        dist.all_gather(gathered, torch.ones(4))


def twin(dist: Any) -> None:
    """Every rank gathers, then comes to the barrier."""
    gathered = [torch.empty(4) for _ in range(3)]
    dist.all_gather(gathered, torch.full((4,), dist.get_rank()).float())
    dist.barrier()
    assert [part[0].item() for part in gathered] == [0.0, 1.0, 2.0]
