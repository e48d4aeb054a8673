"""TensorFlow's arithmetic functions of one or two tensors, over torch. Gradients are torch's.

Each takes arrays, numbers, variables and lists, and returns a tensor. Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional

from collshim.errors import ArgumentTypeError, ArgumentValueError
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
    """Return two tensors of the same dtype; Python numbers are converted to the other operand's dtype.

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
    """Return ``x`` converted to ``dtype``; floats are truncated to integers. Slices keep their indices."""
    if isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, dtype), x.indices, x.dense_shape)
    return adopt(tensor(x).to(torch_dtype(dtype)))


def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """Return the sum of tensors of the same shape and dtype.

    Raises:
        InvalidArgumentError: shapes or dtypes differ.
    """
    total, *others = [tensor(value) for value in inputs]
    for value in others:
        if value.dtype is not total.dtype or value.shape != total.shape:
            raise invalid_argument(
                f"Inputs to operation AddN must have the same size, shape and dtype. Input 0: {list(total.shape)} "
                f"{dtype_name(total.dtype)} != another: {list(value.shape)} {dtype_name(value.dtype)}"
            )
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
    """Return the quotient, or 0 if ``y`` is 0."""
    first, second = pair(x, y, "DivNoNan")
    zero = second == 0
    return adopt(torch.where(zero, torch.zeros_like(first), first / torch.where(zero, torch.ones_like(second), second)))


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
sin, cos, tan, asin, acos, atan = map(_unary, (torch.sin, torch.cos, torch.tan, torch.asin, torch.acos, torch.atan))
sinh, cosh, asinh, acosh, atanh = map(_unary, (torch.sinh, torch.cosh, torch.asinh, torch.acosh, torch.atanh))
ceil, log1p, expm1, erf, reciprocal = map(_unary, (torch.ceil, torch.log1p, torch.expm1, torch.erf, torch.reciprocal))
is_inf, logical_xor, floormod = _unary(torch.isinf), _binary(torch.logical_xor), mod


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Return elements of ``x`` if the condition holds, else of ``y``; without both, the true indices, ``(n, ndim)``."""
    if x is None and y is None:
        return adopt(torch.nonzero(tensor(condition)))
    return adopt(torch.where(tensor(condition), *pair(x, y, "SelectV2")))


def constant_like(value: Any, number: float, dtype: Any = None) -> Tensor:
    """Return a tensor with the shape of ``value``, filled with ``number``."""
    like = tensor(value)
    return adopt(torch.full_like(like, number, dtype=like.dtype if dtype is None else torch_dtype(dtype)))


def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """Return the angle of the point ``(x, y)``."""
    return adopt(torch.atan2(*pair(y, x)))


def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the square of ``x - y``; for complex numbers, of its absolute value, with the same dtype."""
    first, second = pair(x, y, "SquaredDifference")
    distance = first - second
    return adopt(distance * distance.conj())


def truediv(x: Any, y: Any, name: str | None = None) -> Any:
    """Return ``x / y``; the quotient of integers is a float.

    Raises:
        TypeError: the dtypes differ, or are bool.
    """
    try:
        first, second = pair(x, y, "RealDiv")
    except ArgumentValueError as error:
        raise ArgumentTypeError(f"`x` and `y` must have the same dtype: {error}") from error
    if first.dtype is torch.bool:
        raise ArgumentTypeError("Invalid dtype tf.bool in __truediv__")
    return divide(first, second)


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Tensor:
    """Return a number times a tensor, in the tensor's dtype.

    Raises:
        ValueError: ``scalar`` has axes or a different dtype.
    """
    values = tensor(x)
    factor = tensor(scalar, values.dtype)
    if factor.dim():
        raise ArgumentValueError(f"The input scalar must be a 0-D value. Received shape {tuple(factor.shape)}.")
    return adopt(factor * values)


def accumulate_n(inputs: Any, shape: Any = None, tensor_dtype: Any = None, name: str | None = None) -> Tensor:
    """Return the sum of a list of tensors of the same shape and dtype.

    Raises:
        ValueError: the list is empty, or dtypes or shapes differ.
        TypeError: ``tensor_dtype`` is not their dtype.
    """
    parts = [tensor(one) for one in inputs]
    if len({(part.dtype, part.shape) for part in parts}) != 1:
        raise ArgumentValueError("inputs must be a list of at least one Tensor with the same dtype and shape")
    if tensor_dtype is not None and torch_dtype(tensor_dtype) is not parts[0].dtype:
        raise ArgumentTypeError(
            f"The `tensor_dtype` argument is {torch_dtype(tensor_dtype)}, but `input` is of type {parts[0].dtype}. "
            "These must be equal. Try casting the input to the desired type."
        )
    return add_n(parts)
