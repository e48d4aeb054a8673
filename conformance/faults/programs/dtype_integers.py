"""dtype: rank 1 gives int32 to a sum of float32, as many bytes.

blame: 1
"""

from __future__ import annotations

from typing import Any

import torch


def fault(dist: Any) -> None:
    """Bits of integers meet bits of floats."""
    dtype = torch.int32 if dist.get_rank() == 1 else torch.float32
    dist.all_reduce(torch.ones(4, dtype=dtype))  # <- here


def twin(dist: Any) -> None:
    """One dtype."""
    ones = torch.ones(4, dtype=torch.int32)
    dist.all_reduce(ones)
    assert ones.tolist() == [3] * 4
