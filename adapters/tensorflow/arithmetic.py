"""TensorFlow's functions that compute with one or two tensors, over torch. Gradients are torch's.

Each takes arrays, numbers, variables and lists, and returns a tensor. Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from collshim.errors import ArgumentTypeError
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.indexed_slices import IndexedSlices
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name, plain


def tensor(value: Any, dtype: Any = None) -> torch.Tensor:
    """Convert ``value`` to a tensor of torch's own class."""
    found: torch.Tensor = plain(convert_to_tensor(value, dtype))
    return found


def pair(x: Any, y: Any, operation: str = "AddV2") -> tuple[torch.Tensor, torch.Tensor]:
    """Return two tensors of one dtype; Python numbers take the other's.

    Raises:
        InvalidArgumentError: the dtypes differ.
    """
    known = [value for value in (x, y) if hasattr(value, "dtype")]
    dtype = convert_to_tensor(known[0]).dtype if len(known) == 1 else None
    first, second = (tensor(value, None if hasattr(value, "dtype") else dtype) for value in (x, y))
    if first.dtype is not second.dtype:
        raise invalid_argument(
            f"cannot compute {operation} as input #1(zero-based) was expected to be a {dtype_name(first.dtype)} tensor "
            f"but is a {dtype_name(second.dtype)} tensor"
        )
    return first, second


def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """Return ``x`` in another dtype; floats are truncated to integers. Slices keep their indices."""
    if isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, dtype), x.indices, x.dense_shape)
    return adopt(tensor(x).to(torch_dtype(dtype)))


def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """Return the sum of tensors of one shape and dtype."""
    total, *others = [tensor(value) for value in inputs]
    for value in others:
        total = total + value
    return adopt(total)


def matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False, name: str | None = None) -> Tensor:
    """Return the product of matrices, or of stacks of them."""
    first, second = pair(a, b, "MatMul")
    return adopt((first.mT if transpose_a else first) @ (second.mT if transpose_b else second))


def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the quotient; float64 for integers of 32 and 64 bits."""
    first, second = pair(x, y, "RealDiv")
    wide = first.dtype in (torch.int32, torch.int64)
    return adopt(torch.true_divide(first.to(torch.float64) if wide else first, second))


def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the quotient; 0 where ``y`` is 0."""
    first, second = pair(x, y, "DivNoNan")
    zero = second == 0
    return adopt(torch.where(zero, torch.zeros_like(first), first / torch.where(zero, torch.ones_like(second), second)))


def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Tensor:
    """Clip ``t`` to the bounds."""
    value = tensor(t)
    return adopt(torch.clamp(value, tensor(clip_value_min, value.dtype), tensor(clip_value_max, value.dtype)))


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None) -> Tensor:
    """Divide ``x`` by the root of its sum of squares along ``axis``; that sum is at least ``epsilon``."""
    value = tensor(x)
    squares = value.square().sum(list(range(value.dim())) if axis is None else axis, keepdim=True)
    return adopt(value * torch.rsqrt(torch.clamp(squares, min=epsilon)))


def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """Return the cross entropy of ``labels``, which sum to 1 along ``axis``, and the softmax of ``logits``."""
    given, scores = tensor(labels), tensor(logits)
    return adopt(-(given.to(scores.dtype) * functional.log_softmax(scores, axis)).sum(axis))


def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Tensor:
    """Return the cross entropy of class numbers, one per example, and the softmax of ``logits``."""
    given, scores = tensor(labels), tensor(logits)
    return adopt(-functional.log_softmax(scores, -1).gather(-1, given.long().unsqueeze(-1)).squeeze(-1))


def softmax(logits: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """Return the softmax along ``axis``."""
    return adopt(functional.softmax(tensor(logits), axis))


def log_softmax(logits: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """Return the logarithm of ``softmax``."""
    return adopt(functional.log_softmax(tensor(logits), axis))


def _unary(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., Tensor]:
    def compute(x: Any, name: str | None = None) -> Tensor:
        return adopt(function(tensor(x)))

    compute.__doc__ = f"torch's ``{getattr(function, '__name__', 'function')}`` of ``x``, element by element."
    return compute


def _binary(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable[..., Tensor]:
    def compute(x: Any, y: Any, name: str | None = None) -> Tensor:
        return adopt(function(*pair(x, y, getattr(function, "__name__", "function").capitalize())))

    compute.__doc__ = f"torch's ``{getattr(function, '__name__', 'function')}`` of ``x`` and ``y``."
    return compute


abs, negative, square, sqrt, exp = (_unary(f) for f in (torch.abs, torch.neg, torch.square, torch.sqrt, torch.exp))
log, rsqrt, sigmoid, tanh = (_unary(f) for f in (torch.log, torch.rsqrt, torch.sigmoid, torch.tanh))
round, floor, sign, stop_gradient = (_unary(f) for f in (torch.round, torch.floor, torch.sign, torch.Tensor.detach))
is_nan, is_finite, relu, logical_not = (
    _unary(f) for f in (torch.isnan, torch.isfinite, functional.relu, torch.logical_not)
)
add, subtract, multiply, pow = (_binary(f) for f in (torch.add, torch.sub, torch.mul, torch.pow))
maximum, minimum, floordiv, mod = (
    _binary(f) for f in (torch.maximum, torch.minimum, torch.floor_divide, torch.remainder)
)
equal, not_equal, less, greater = (_binary(f) for f in (torch.eq, torch.ne, torch.lt, torch.gt))
less_equal, greater_equal = _binary(torch.le), _binary(torch.ge)
logical_and, logical_or = _binary(torch.logical_and), _binary(torch.logical_or)


def _axes(value: torch.Tensor, axis: Any) -> list[int]:
    """Return the axes to reduce; all for None.

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
    """Return the sum over ``axis``, or over all axes, also of a ragged tensor, in the same dtype."""
    value = tensor(getattr(input_tensor, "flat_values", input_tensor) if axis is None else input_tensor)
    axes = _axes(value, axis)
    return adopt(value.sum(axes, keepdim=keepdims, dtype=value.dtype) if axes else value.clone())


def reduce_mean(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> Tensor:
    """Return the mean over ``axis``, or over all axes; truncated for integers."""
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
    """Return the mean squared distance from the mean over ``axis``, or over all axes.

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


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Return ``x`` where the condition holds, else ``y``; without both, where it holds as ``(n, ndim)`` int64."""
    if x is None and y is None:
        return adopt(torch.nonzero(tensor(condition)))
    return adopt(torch.where(tensor(condition), *pair(x, y, "SelectV2")))


def norm(tensor_: Any, ord: Any = "euclidean", axis: Any = None, keepdims: bool = False) -> Tensor:
    """Return the root of the sum of squares, over ``axis`` or all axes.

    Raises:
        InvalidArgumentError: ``ord`` is another one.
    """
    if ord not in ("euclidean", 2):
        raise invalid_argument(f"norm: ord is {ord!r}, should be 'euclidean' or 2")
    return adopt(plain(reduce_sum(square(tensor_), axis, keepdims)).sqrt())


def constant_like(value: Any, number: float, dtype: Any = None) -> Tensor:
    """Return a tensor with the shape of ``value``, filled with ``number``."""
    like = tensor(value)
    return adopt(torch.full_like(like, number, dtype=like.dtype if dtype is None else torch_dtype(dtype)))
