"""split sizes: rank 2 gives rank 0 a longer part than that awaits.

blame: 2
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """One part of a list is longer."""
    parts = [torch.ones(2) for _ in range(3)]
    if dist.get_rank() == 2:
        parts[0] = torch.ones(4)
    dist.all_to_all([torch.empty(2) for _ in range(3)], parts)  # <- here


def twin(dist: Any) -> None:
    """Parts of the length that is awaited."""
    outputs = [torch.empty(2) for _ in range(3)]
    dist.all_to_all(outputs, [torch.full((2,), float(rank)) for rank in range(3)])
    assert [part.tolist() for part in outputs] == [[float(dist.get_rank())] * 2] * 3
