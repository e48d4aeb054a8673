"""dtype: rank 2 gathers float64 where the others gather float32.

blame: 2
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Twice as many bytes."""
    dtype = torch.float64 if dist.get_rank() == 2 else torch.float32
    dist.all_gather([torch.empty(4, dtype=dtype) for _ in range(3)], torch.ones(4, dtype=dtype))  # <- here


def twin(dist: Any) -> None:
    """One dtype."""
    gathered = [torch.empty(4, dtype=torch.float64) for _ in range(3)]
    dist.all_gather(gathered, torch.full((4,), dist.get_rank(), dtype=torch.float64))
    assert [part[0].item() for part in gathered] == [0.0, 1.0, 2.0]
