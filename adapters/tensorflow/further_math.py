"""More functions of ``tf.math``, over torch. Gradients are torch's. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn import functional

from collshim.tensorflow.arithmetic import pair, tensor
from collshim.tensorflow.tensor import Tensor, adopt


def _unary(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Tensor]:
    def compute(x: Any, name: str | None = None) -> Tensor:
        return adopt(function(tensor(x)))

    compute.__doc__ = f"torch's ``{function.__name__}``."
    return compute


def _binary(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable[..., Tensor]:
    def compute(x: Any, y: Any, name: str | None = None) -> Tensor:
        return adopt(function(*pair(x, y)))

    compute.__doc__ = f"torch's ``{function.__name__}``."
    return compute


sin, cos, tan, asin, acos, atan = map(_unary, (torch.sin, torch.cos, torch.tan, torch.asin, torch.acos, torch.atan))
sinh, cosh, asinh, acosh, atanh = map(_unary, (torch.sinh, torch.cosh, torch.asinh, torch.acosh, torch.atanh))
ceil, log1p, expm1, erf, reciprocal = map(_unary, (torch.ceil, torch.log1p, torch.expm1, torch.erf, torch.reciprocal))
softplus, is_inf = _unary(functional.softplus), _unary(torch.isinf)
logical_xor, floormod = _binary(torch.logical_xor), _binary(torch.remainder)


def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """Return the angle of the point ``(x, y)``."""
    return adopt(torch.atan2(*pair(y, x)))


def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return ``(x - y) ** 2``."""
    first, second = pair(x, y)
    return adopt(torch.square(first - second))


def truediv(x: Any, y: Any, name: str | None = None) -> Any:
    """Return ``x / y``; integers give floats."""
    first, second = pair(x, y)
    return adopt(first) / adopt(second)


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Tensor:
    """Return a number times a tensor."""
    return adopt(tensor(scalar, None if hasattr(scalar, "dtype") else tensor(x).dtype) * tensor(x))


def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Tensor:
    """Return the sum of a list's tensors."""
    total, *others = [tensor(one) for one in inputs]
    for one in others:
        total = total + one
    return adopt(total)


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Return the sums up to each element along an axis: with it, or before it; from the end if ``reverse``."""
    return _cumulated(torch.cumsum, x, int(axis), exclusive, reverse, 0)


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Return the products up to each element along an axis; see ``cumsum``."""
    return _cumulated(torch.cumprod, x, int(axis), exclusive, reverse, 1)


def _cumulated(function: Any, x: Any, axis: int, exclusive: bool, reverse: bool, start: int) -> Tensor:
    values = tensor(x).flip(axis) if reverse else tensor(x)
    if exclusive:
        first = torch.full_like(values.narrow(axis, 0, 1), start)
        values = torch.cat([first, values.narrow(axis, 0, values.shape[axis] - 1)], axis)
    found = function(values, axis, dtype=values.dtype)
    return adopt(found.flip(axis) if reverse else found)


def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the logarithm of the sum of the exponentials."""
    values = tensor(input_tensor)
    axes = list(range(values.dim())) if axis is None else axis
    return adopt(torch.logsumexp(values, axes, keepdims))


def count_nonzero(
    input: Any, axis: Any = None, keepdims: bool | None = None, dtype: Any = torch.int64, name: str | None = None
) -> Tensor:
    """Return the number of elements that are not zero."""
    is_set = (tensor(input) != 0).to(dtype)
    return adopt(is_set.sum() if axis is None else is_set.sum(axis, bool(keepdims)))


class TopK(NamedTuple):
    """The largest elements, and their places."""

    values: Tensor
    indices: Tensor


def top_k(input: Any, k: Any = 1, sorted: bool = True, index_type: Any = torch.int32, name: str | None = None) -> TopK:
    """Return the ``k`` largest elements along the last axis, and their places."""
    values, places = torch.topk(tensor(input), int(k), sorted=sorted)
    return TopK(adopt(values), adopt(places.to(index_type)))
