"""What the calls are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

SIZE = 3
Op = torch.distributed.ReduceOp
Call = Callable[[Any, int], Any]


def tensor_of(rank: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """[1, 2, 3] on rank 0, [2, 3, 4] on rank 1."""
    return (torch.arange(SIZE) + 1 + rank).to(dtype)
