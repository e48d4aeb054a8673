"""TensorFlow's functions that reduce the axes of a tensor, or accumulate along one. Gradients are torch's.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.arithmetic import axes_of, axis_of, booleans, sqrt, tensor
from collshim.tensorflow.arithmetic import tensor as as_tensor
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.function_names import name_functions
from collshim.tensorflow.operands import numbers
from collshim.tensorflow.ragged_rows import over_rows
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name, plain


@over_rows
@checked
def reduce_sum(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the sum over ``axis``, or over all axes, in the same dtype; the tensor may be ragged."""
    value = numbers(tensor(input_tensor))
    axes = axes_of(value, axis)
    return adopt(value.sum(axes, keepdim=keepdims, dtype=value.dtype) if axes else value.clone())


@functools.partial(over_rows, fractions=True)
@checked
def reduce_mean(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the mean over ``axis``, or over all axes; for integers, it is truncated. The tensor may be ragged."""
    value = numbers(tensor(input_tensor))
    axes = axes_of(value, axis)
    if not axes:
        return adopt(value.clone())
    if value.is_floating_point() or value.is_complex():
        return adopt(value.mean(axes, keepdim=keepdims))
    count = torch.Size(value.shape[number] for number in axes).numel()
    total = value.sum(axes, keepdim=keepdims, dtype=value.dtype)
    return adopt(torch.div(total, count, rounding_mode="trunc"))


@checked
def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the variance over ``axis``, or over all axes.

    Raises:
        TypeError: the tensor holds integers.
    """
    value = tensor(input_tensor)
    if not (value.is_floating_point() or value.is_complex()):
        raise ArgumentTypeError(
            f"Input must be either real or complex. Received integer type {dtype_name(value.dtype)}."
        )
    distances = value - plain(reduce_mean(value, axis, True))
    return reduce_mean(distances.abs().square(), axis, keepdims)


@checked
def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the square root of ``reduce_variance``."""
    return sqrt(reduce_variance(input_tensor, axis, keepdims))


def _reduction(
    function: Callable[..., torch.Tensor], empty: float | None = None, takes_booleans: bool = False
) -> Callable[..., Tensor]:
    """Return torch's reduction over one axis as a reduction over several; ``empty`` is its value of no elements."""

    @checked
    def reduce(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
        value = tensor(input_tensor) if takes_booleans else numbers(tensor(input_tensor))
        dtype = value.dtype
        for number in sorted((number % value.dim() for number in axes_of(value, axis)), reverse=True):
            if empty is not None and not value.shape[number]:
                value = value.sum(number, keepdim=keepdims, dtype=dtype) + _bound(dtype, empty)
            else:
                value = function(value, number, keepdim=keepdims)
        return adopt(value.to(dtype))

    reduce.__doc__ = f"torch's ``{function.__name__}`` over ``axis``, or over all axes; the tensor may be ragged."
    return over_rows(reduce)


def _bound(dtype: torch.dtype, sign: float) -> float:
    """Return the least number of a dtype, or the greatest one if ``sign`` is positive."""
    if dtype.is_floating_point:
        return sign * float("inf")
    limits = torch.iinfo(dtype)
    return limits.max if sign > 0 else limits.min


reduce_max, reduce_min, reduce_prod = _reduction(torch.amax, -1), _reduction(torch.amin, 1), _reduction(torch.prod)


def _truth(function: Callable[..., torch.Tensor]) -> Callable[..., Tensor]:
    reduction = _reduction(function, takes_booleans=True)

    @checked
    def reduce(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
        return reduction(*booleans(input_tensor), axis, keepdims)

    reduce.__doc__ = f"torch's ``{function.__name__}`` of booleans over ``axis``, or over all axes."
    return over_rows(reduce)


reduce_all, reduce_any = _truth(torch.all), _truth(torch.any)


@checked
def argmax(input: Any, axis: Any = None, output_type: Any = torch.int64, name: str | None = None) -> Tensor:
    """Return the index of the largest element along ``axis``, by default 0."""
    return _position(torch.argmax, input, axis, output_type)


@checked
def argmin(input: Any, axis: Any = None, output_type: Any = torch.int64, name: str | None = None) -> Tensor:
    """Return the index of the smallest element along ``axis``, by default 0."""
    return _position(torch.argmin, input, axis, output_type)


def _position(function: Callable[..., torch.Tensor], input: Any, axis: Any, output_type: Any) -> Tensor:
    value, place = tensor(input), 0 if axis is None else axis_of(axis)
    if not -value.dim() <= place < value.dim():
        raise invalid_argument(f"Expected dimension in the range [{-value.dim()}, {value.dim()}), but got {place}")
    if value.is_floating_point():
        value = torch.where(value.isnan(), -float("inf") if function is torch.argmax else float("inf"), value)
    return adopt(function(value.byte() if value.dtype is torch.bool else value, place).to(torch_dtype(output_type)))


@checked
def norm(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool | None = None, name: str | None = None
) -> Tensor:
    """Return a norm: of all elements, of the vectors along an axis, or of the matrices along a list of two axes.

    ``ord`` is ``"euclidean"``, a positive number or infinity for vectors; ``"euclidean"``, ``"fro"``, 1, 2 or infinity
    for matrices.

    Raises:
        ValueError: there is no such norm, or ``axis`` is something else.
    """
    value, keep = as_tensor(tensor), bool(keepdims)
    if isinstance(axis, list | tuple) and len(axis) == 2 and axis[0] != axis[1]:
        if ord not in ("euclidean", "fro", 1, 2, float("inf")):
            raise ArgumentValueError(
                f"'ord' must be a supported matrix norm in ['euclidean', 'fro', 1, 2, inf], got {ord}"
            )
        if ord not in ("euclidean", "fro"):
            return adopt(torch.linalg.matrix_norm(value, ord, tuple(axis), keep))
        return _vector_norm(value, 2, axis, keep)
    if axis is not None and not isinstance(axis, int):
        raise ArgumentValueError(f"'axis' must be None, an integer, or a tuple of 2 unique integers, got {axis}")
    if (isinstance(ord, str) and ord != "euclidean") or (not isinstance(ord, str) and not ord > 0):
        raise ArgumentValueError(f"'ord' must be a supported vector norm, got {ord}")
    return _vector_norm(value, 2 if isinstance(ord, str) else ord, axis, keep)


def _vector_norm(value: torch.Tensor, ord: float, axis: Any, keepdims: bool) -> Tensor:
    if ord == 2:
        return sqrt(reduce_sum(value * value.conj(), axis, keepdims))
    size = value.abs()
    if ord == 1:
        return reduce_sum(size, axis, keepdims)
    return (
        reduce_max(size, axis, keepdims)
        if ord == float("inf")
        else adopt(plain(reduce_sum(size**ord, axis, keepdims)) ** (1 / ord))
    )


@checked
def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the logarithm of the sum of the exponentials."""
    values = numbers(tensor(input_tensor))
    axes = axes_of(values, axis)
    return adopt(torch.logsumexp(values, axes, keepdims) if axes else values.clone())


@checked
def count_nonzero(
    input: Any, axis: Any = None, keepdims: bool | None = None, dtype: Any = torch.int64, name: str | None = None
) -> Tensor:
    """Return the number of elements that are not zero."""
    return reduce_sum((tensor(input) != 0).to(torch_dtype(dtype)), axis, bool(keepdims))


@checked
def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Return cumulative sums along an axis: including each element, or ``exclusive``; from the end if ``reverse``."""
    return _cumulated(torch.cumsum, x, axis_of(axis), exclusive, reverse, 0)


@checked
def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Return cumulative products along an axis; see ``cumsum``."""
    return _cumulated(torch.cumprod, x, axis_of(axis), exclusive, reverse, 1)


def _cumulated(function: Any, x: Any, axis: int, exclusive: bool, reverse: bool, start: int) -> Tensor:
    whole = tensor(x)
    if not -whole.dim() <= axis < whole.dim():
        raise invalid_argument(
            f"ScanOp: Expected scan axis in the range [{-whole.dim()}, {whole.dim()}), but got {axis}"
        )
    values = whole.flip(axis) if reverse else whole
    if exclusive and values.shape[axis]:
        first = torch.full_like(values.narrow(axis, 0, 1), start)
        values = torch.cat([first, values.narrow(axis, 0, values.shape[axis] - 1)], axis)
    found = function(values, axis, dtype=values.dtype)
    return adopt(found.flip(axis) if reverse else found)


name_functions(globals())
