"""Functions of ``mindspore.ops`` that torch also has, with the same argument order (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from collshim.mindspore._of_torch import renamed

_SAME = """
acos addcmul all amax amin any argmin argsort asin atan atan2 bitwise_and bitwise_or bitwise_xor bmm broadcast_to
ceil chunk clamp clip cos cosh cumsum divide dot einsum erf erfinv expm1 flip floor fmod ge greater gt hstack
index_select isclose isinf isnan le lerp less linspace log10 log1p log2 logical_and logical_not logical_or logsumexp
lt masked_fill masked_select mm movedim multiply mv narrow ne negative nonzero norm not_equal numel outer permute
prod reciprocal remainder roll round rsqrt scatter sign sin sinh sort subtract swapaxes tan tril triu true_divide
trunc unbind unique vstack where
"""


def _topk(input: Any, k: int, dim: int | None = None, largest: bool = True, sorted: bool = True) -> Any:
    return torch.topk(input, k, -1 if dim is None else dim, largest, sorted)


def _spread(of: Any) -> Any:
    def call(input: Any, dim: Any = None, ddof: int = 0, keepdim: bool = False) -> Any:
        return of(input, dim, correction=int(ddof), keepdim=keepdim)

    return call


def _extreme(of: Any) -> Any:
    def call(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        return (of(input), torch.tensor(0)) if dim is None else tuple(of(input, dim, keepdim))

    return call


_OTHER = {
    "elu": functional.elu,
    "gather_d": torch.gather,
    "gather_elements": torch.gather,
    "hardswish": functional.hardswish,
    "l1_loss": functional.l1_loss,
    "layer_norm": functional.layer_norm,
    "max": _extreme(torch.max),
    "min": _extreme(torch.min),
    "relu6": functional.relu6,
    "select": torch.where,
    "silu": functional.silu,
    "softplus": functional.softplus,
    "std": _spread(torch.std),
    "tensor_add": torch.add,
    "tensor_div": torch.div,
    "tensor_mul": torch.mul,
    "tensor_sub": torch.sub,
    "topk": _topk,
    "unstack": torch.unbind,
    "var": _spread(torch.var),
}

_MADE = renamed(__name__, {name: getattr(torch, name) for name in _SAME.split()} | _OTHER)
vars().update(_MADE)

__all__: list[str] = []
__all__ += list(_MADE)  # pyright: ignore[reportUnsupportedDunderAll]
