"""Check in C++ whether tensors equal earlier ones in all but their memory and values.

The check compares class, dtype, device, shape, strides and layout, whether tensors require a gradient, and whether they
are lazily negated, nested, or made in inference mode. It uses the guards that torch.compile evaluates before each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Likeness = Callable[..., bool]
"""A function that takes as many tensors as it was made from; an argument can also be an object of another type."""

_GUARDS: Any = getattr(getattr(torch._C, "_dynamo", None), "guards", None)


def _make(kind: Any, tensors: tuple[Tensor, ...]) -> Likeness:
    sizes, strides = [[*tensor.shape] for tensor in tensors], [[*tensor.stride()] for tensor in tensors]
    likeness: Likeness = kind(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
    return likeness


def _guards() -> Any:
    """Return torch's class of guards; None if this release has none, or if its class behaves differently."""
    kind, row, column = getattr(_GUARDS, "TensorGuards", None), torch.empty(2), torch.empty(4)[::2]
    try:
        is_alike = _make(kind, (row, row))
        knows = is_alike(torch.empty(2), row) and not any(map(is_alike, (row, column, None), (column, row, row)))
    except (TypeError, RuntimeError, SystemError):
        return None
    return kind if knows else None


_KIND = _guards()


def likeness_of(*tensors: Tensor) -> Likeness | None:
    """Return a function that checks whether tensors are like these; None if this torch release cannot."""
    return None if _KIND is None else _make(_KIND, tensors)
