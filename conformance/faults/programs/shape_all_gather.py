"""shape: rank 2 gathers 2 elements where the others gather 3.

blame: 2
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Two lengths."""
    length = 2 if dist.get_rank() == 2 else 3
    dist.all_gather([torch.empty(length) for _ in range(3)], torch.ones(length))  # <- here


def twin(dist: Any) -> None:
    """One length."""
    gathered = [torch.empty(3) for _ in range(3)]
    dist.all_gather(gathered, torch.full((3,), float(dist.get_rank())))
    assert [part.tolist() for part in gathered] == [[0.0] * 3, [1.0] * 3, [2.0] * 3]
