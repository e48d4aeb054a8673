"""TensorFlow's functions that reduce the axes of a tensor, or accumulate along one. Gradients are torch's.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from collshim.errors import ArgumentTypeError
from collshim.tensorflow.arithmetic import square, tensor
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name, plain


def _axes(value: torch.Tensor, axis: Any) -> list[int]:
    """Return the axes to reduce; all axes for None.

    Raises:
        InvalidArgumentError: there is no such axis.
    """
    if axis is None:
        return list(range(value.dim()))
    axes = [int(number) for number in (axis if isinstance(axis, list | tuple) else torch.as_tensor(axis).reshape(-1))]
    for number in axes:
        if not -value.dim() <= number < value.dim():
            raise invalid_argument(f"Invalid reduction dimension ({number} for input with {value.dim()} dimension(s)")
    return axes


def reduce_sum(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the sum over ``axis``, or over all axes, in the same dtype; the tensor may be ragged."""
    value = tensor(getattr(input_tensor, "flat_values", input_tensor) if axis is None else input_tensor)
    axes = _axes(value, axis)
    return adopt(value.sum(axes, keepdim=keepdims, dtype=value.dtype) if axes else value.clone())


def reduce_mean(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the mean over ``axis``, or over all axes; for integers, it is truncated."""
    value = tensor(input_tensor)
    axes = _axes(value, axis)
    if not axes:
        return adopt(value.clone())
    if value.is_floating_point() or value.is_complex():
        return adopt(value.mean(axes, keepdim=keepdims))
    count = torch.Size(value.shape[number] for number in axes).numel()
    total = value.sum(axes, keepdim=keepdims, dtype=value.dtype)
    return adopt(torch.div(total, count, rounding_mode="trunc"))


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


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the square root of ``reduce_variance``."""
    return adopt(plain(reduce_variance(input_tensor, axis, keepdims)).sqrt())


def _reduction(function: Callable[..., torch.Tensor]) -> Callable[..., Tensor]:
    def reduce(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
        value = tensor(input_tensor)
        for number in sorted((number % value.dim() for number in _axes(value, axis)), reverse=True):
            value = function(value, number, keepdim=keepdims)
        return adopt(value)

    reduce.__doc__ = f"torch's ``{function.__name__}`` over ``axis``, or over all axes."
    return reduce


reduce_max, reduce_min, reduce_prod = _reduction(torch.amax), _reduction(torch.amin), _reduction(torch.prod)


reduce_all, reduce_any = _reduction(torch.all), _reduction(torch.any)


def argmax(input: Any, axis: int | None = None, output_type: Any = torch.int64, name: str | None = None) -> Tensor:
    """Return the index of the largest element along ``axis``, by default 0."""
    return adopt(tensor(input).argmax(axis or 0).to(torch_dtype(output_type)))


def argmin(input: Any, axis: int | None = None, output_type: Any = torch.int64, name: str | None = None) -> Tensor:
    """Return the index of the smallest element along ``axis``, by default 0."""
    return adopt(tensor(input).argmin(axis or 0).to(torch_dtype(output_type)))


def norm(tensor_: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the Euclidean norm over ``axis``, or over all axes.

    Raises:
        InvalidArgumentError: ``ord`` is a different norm.
    """
    if ord not in ("euclidean", 2):
        raise invalid_argument(f"norm: ord is {ord!r}, should be 'euclidean' or 2")
    return adopt(plain(reduce_sum(square(tensor_), axis, keepdims)).sqrt())


@checked
def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the logarithm of the sum of the exponentials."""
    values = tensor(input_tensor)
    axes = _axes(values, axis)
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
    return _cumulated(torch.cumsum, x, int(axis), exclusive, reverse, 0)


@checked
def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Return cumulative products along an axis; see ``cumsum``."""
    return _cumulated(torch.cumprod, x, int(axis), exclusive, reverse, 1)


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
