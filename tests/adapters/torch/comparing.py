"""Compare the outcomes of calls over gloo and over collshim."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


def alike(one: Any, other: Any) -> bool:
    """Return whether two outcomes are equal; tensors are if their dtypes and all values are."""
    if isinstance(one, Tensor):
        return isinstance(other, Tensor) and one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)
