"""Arithmetic and reductions of ``mindspore.ops`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any, cast

import torch

from collshim.mindspore.common.dtype import torch_dtype
from collshim.mindspore.reducing import along, mean_of
from collshim.mindspore.tensor import Tensor, has_boolean, minus, wrap

__all__ = [
    "abs",
    "add",
    "argmax",
    "div",
    "equal",
    "exp",
    "isfinite",
    "log",
    "matmul",
    "maximum",
    "mean",
    "minimum",
    "mul",
    "neg",
    "pow",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_sum",
    "sqrt",
    "square",
    "sub",
    "sum",
]


def add(input: Any, other: Any) -> Tensor:
    """Return the elementwise sum."""
    return cast(Tensor, wrap(_tensor(input, other) + other))


def sub(input: Any, other: Any) -> Tensor:
    """Return the elementwise difference."""
    return cast(Tensor, minus(input, other) if has_boolean(input, other) else wrap(_tensor(input, other) - other))


def mul(input: Any, other: Any) -> Tensor:
    """Return the elementwise product."""
    return cast(Tensor, wrap(_tensor(input, other) * other))


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Return the elementwise quotient; ``rounding_mode``: None, "floor" or "trunc"."""
    return cast(Tensor, wrap(torch.div(torch.as_tensor(input), other, rounding_mode=rounding_mode)))


def pow(input: Any, exponent: Any) -> Tensor:
    """Return the elementwise power."""
    return cast(Tensor, wrap(torch.pow(_tensor(input, exponent), exponent)))


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the product of matrices, or of batches of them."""
    return cast(Tensor, wrap(torch.matmul(input, other)))


def maximum(input: Any, other: Any) -> Tensor:
    """Return the elementwise maximum."""
    return cast(Tensor, wrap(torch.maximum(torch.as_tensor(input), torch.as_tensor(other))))


def minimum(input: Any, other: Any) -> Tensor:
    """Return the elementwise minimum."""
    return cast(Tensor, wrap(torch.minimum(torch.as_tensor(input), torch.as_tensor(other))))


def equal(input: Any, other: Any) -> Tensor:
    """Return whether the elements are equal."""
    return cast(Tensor, wrap(torch.eq(torch.as_tensor(input), other)))


def exp(input: Tensor) -> Tensor:
    """Return the elementwise exponential."""
    return cast(Tensor, wrap(torch.exp(input)))


def log(input: Tensor) -> Tensor:
    """Return the elementwise natural logarithm."""
    return cast(Tensor, wrap(torch.log(input)))


def sqrt(x: Tensor) -> Tensor:
    """Return the elementwise square root."""
    return cast(Tensor, wrap(torch.sqrt(x)))


def square(input: Tensor) -> Tensor:
    """Return the elementwise square."""
    return cast(Tensor, wrap(torch.square(input)))


def abs(input: Tensor) -> Tensor:
    """Return the elementwise absolute value."""
    return cast(Tensor, wrap(torch.abs(input)))


def neg(input: Tensor) -> Tensor:
    """Return the elements with the opposite sign."""
    return cast(Tensor, wrap(torch.neg(input)))


def isfinite(input: Tensor) -> Tensor:
    """Return whether the elements are finite."""
    return cast(Tensor, wrap(torch.isfinite(input)))


def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum over all axes, or over ``dim``."""
    own = None if dtype is None else torch_dtype(dtype)
    return cast(Tensor, wrap(torch.sum(input, _axes(dim), keepdim, dtype=own)))


def mean(x: Tensor, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Return the mean over all axes, or over these; a mean of integers is truncated to an integer."""
    return cast(Tensor, wrap(mean_of(x, axis, keep_dims)))


def argmax(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Return the index of the greatest element, of all or along ``dim``, in int64."""
    own = input.to(torch.uint8) if input.dtype is torch.bool else input
    return cast(Tensor, wrap(torch.argmax(own, dim, keepdim and dim is not None)))


def reduce_sum(x: Tensor, axis: Any = ()) -> Tensor:
    """Return the sum over all axes, or over ``axis``, in the tensor's dtype."""
    return sum_over(x, axis, False)


def reduce_mean(x: Tensor, axis: Any = ()) -> Tensor:
    """Return the mean over all axes, or over these."""
    return mean(x, axis)


def reduce_max(x: Tensor, axis: Any = ()) -> Tensor:
    """Return the maximum over all axes, or over ``axis``."""
    return max_over(x, axis, False)


def reduce_min(x: Tensor, axis: Any = ()) -> Tensor:
    """Return the minimum over all axes, or over ``axis``."""
    return min_over(x, axis, False)


def sum_over(x: Tensor, axis: Any, keep_dims: bool) -> Tensor:
    """Return the sum in the tensor's dtype, for ``ReduceSum``."""
    return sum(x, axis, keep_dims, dtype=x.dtype)


def max_over(x: Tensor, axis: Any, keep_dims: bool) -> Tensor:
    """Return the maximum, for ``ReduceMax``."""
    return cast(Tensor, wrap(along(torch.amax, x, axis, keep_dims)))


def min_over(x: Tensor, axis: Any, keep_dims: bool) -> Tensor:
    """Return the minimum, for ``ReduceMin``."""
    return cast(Tensor, wrap(along(torch.amin, x, axis, keep_dims)))


def _axes(axis: Any) -> Any:
    """Return the axes in torch's form: None for all axes."""
    if axis is None or isinstance(axis, int):
        return axis
    return tuple(axis) or None


def _tensor(value: Any, beside: Any) -> Any:
    """Return a number as a tensor, unless the other operand is a tensor."""
    return value if isinstance(value, torch.Tensor) or isinstance(beside, torch.Tensor) else torch.as_tensor(value)
