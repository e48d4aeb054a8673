"""Derivatives where frameworks differ from torch: at ties, and of functions that round."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch import Tensor


def first_if_equal(function: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
    """Decorate ``torch.maximum`` or ``torch.minimum`` so that the first of two equal numbers receives the gradient."""

    @wraps(function)
    def compute(x: Tensor, y: Tensor) -> Tensor:
        if not (x.requires_grad or y.requires_grad):
            return function(x, y)
        with torch.no_grad():
            takes_first = (function(x, y) == x) | x.isnan()
        return torch.where(takes_first, x, y)

    return compute


def without_gradient(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Decorate a function that rounds, so that no gradient passes through it."""

    @wraps(function)
    def compute(*values: Any) -> Tensor:
        return function(*(value.detach() if isinstance(value, Tensor) else value for value in values))

    return compute
