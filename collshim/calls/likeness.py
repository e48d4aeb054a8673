"""Whether tensors are like earlier ones in all but their memory and values, by one look in C++.

That is class, dtype, device, shape, strides, layout, whether they need a gradient, and whether they are lazily negated,
nested, or made in inference mode. The look is that of torch's own guards, which torch.compile asks before each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Likeness = Callable[..., bool]
"""Called with as many tensors as it was made of, or with anything else in their place."""

_GUARDS: Any = getattr(getattr(torch._C, "_dynamo", None), "guards", None)


def _made_by(kind: Any, tensors: tuple[Tensor, ...]) -> Likeness:
    sizes, strides = [[*tensor.shape] for tensor in tensors], [[*tensor.stride()] for tensor in tensors]
    likeness: Likeness = kind(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
    return likeness


def _kind() -> Any:
    """torch's class of guards; None where a release has none, or another one than is known here."""
    kind, row, column = getattr(_GUARDS, "TensorGuards", None), torch.empty(2), torch.empty(4)[::2]
    try:
        is_alike = _made_by(kind, (row, row))
        knows = is_alike(torch.empty(2), row) and not any(map(is_alike, (row, column, None), (column, row, row)))
    except (TypeError, RuntimeError, SystemError):
        return None
    return kind if knows else None


_KIND = _kind()


def likeness_of(*tensors: Tensor) -> Likeness | None:
    """Whether others are like these; None where this torch does not tell."""
    return None if _KIND is None else _made_by(_KIND, tensors)
