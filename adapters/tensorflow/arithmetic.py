"""TensorFlow's arithmetic functions of one or two tensors, over torch. Gradients are torch's.

Each takes arrays, numbers, variables and lists, and returns a tensor. Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from collshim.adapting.slopes import first_if_equal, without_gradient
from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow import string_functions
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.derivatives import floor_divided, reciprocal_of, rsqrt_of, sqrt_of
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.function_names import name_functions
from collshim.tensorflow.indexed_slices import IndexedSlices
from collshim.tensorflow.operands import fractions, holds_a_tensor, numbers
from collshim.tensorflow.string_functions import or_of_strings
from collshim.tensorflow.string_tensor import numeric
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name

_WIDE = (torch.int32, torch.int64)
"""The dtypes of integers whose quotients are float64."""


def tensor(value: Any, dtype: Any = None) -> torch.Tensor:
    """Convert ``value`` to a tensor of torch's own class."""
    return numeric(convert_to_tensor(value, dtype))


def pair(x: Any, y: Any, operation: str = "AddV2") -> tuple[torch.Tensor, torch.Tensor]:
    """Return two tensors of the same dtype; see ``matched``.

    Raises:
        InvalidArgumentError: the dtypes differ.
    """
    first, second = matched((x, y))
    if first.dtype is not second.dtype:
        raise invalid_argument(
            f"cannot compute {operation} as input #1(zero-based) was expected to be a {dtype_name(first.dtype)} tensor "
            f"but is a {dtype_name(second.dtype)} tensor"
        )
    return first, second


def matched(values: Sequence[Any]) -> list[torch.Tensor]:
    """Convert operands to tensors; numbers, lists and NumPy's arrays take the dtype of the first tensor among them.

    If there is no tensor, they take the first operand's dtype.
    """
    wanted = next((convert_to_tensor(one).dtype for one in values if has_own_dtype(one)), None)
    found = []
    for one in values:
        found.append(tensor(one, None if has_own_dtype(one) else wanted))
        wanted = wanted or found[0].dtype
    return found


def booleans(*values: Any) -> list[torch.Tensor]:
    """Convert operands to boolean tensors; NumPy's arrays are converted from other dtypes.

    Raises:
        InvalidArgumentError: a tensor has a different dtype.
        TypeError: a number or a list is not boolean.
    """
    found = [tensor(one, None if has_own_dtype(one) else torch.bool) for one in values]
    for place, one in enumerate(found):
        if one.dtype is not torch.bool:
            raise invalid_argument(
                f"input #{place}(zero-based) was expected to be a bool tensor but is a {dtype_name(one.dtype)} tensor"
            )
    return found


def has_own_dtype(value: Any) -> bool:
    """Return whether a value keeps its dtype beside others: a tensor or a variable, or a list that holds one."""
    if isinstance(value, list | tuple):
        return holds_a_tensor(value)
    return hasattr(value, "dtype") and not isinstance(value, np.ndarray | np.generic)


@or_of_strings(string_functions.cast)
@checked
def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """Return ``x`` converted to ``dtype``; floats are truncated to integers. Slices keep their indices."""
    if isinstance(x, IndexedSlices):
        return IndexedSlices(cast(x.values, dtype), x.indices, x.dense_shape)
    return adopt(tensor(x).to(torch_dtype(dtype)))


@checked
def add_n(inputs: Any, name: str | None = None) -> Tensor:
    """Return the sum of tensors of the same shape and dtype.

    Raises:
        InvalidArgumentError: shapes or dtypes differ.
    """
    total, *others = [tensor(value) for value in inputs]
    for value in others:
        numbers(value)
        if value.dtype is not total.dtype or value.shape != total.shape:
            raise invalid_argument(
                f"Inputs to operation AddN must have the same size, shape and dtype. Input 0: {list(total.shape)} "
                f"{dtype_name(total.dtype)} != another: {list(value.shape)} {dtype_name(value.dtype)}"
            )
        total = total + value
    return adopt(total)


@checked
def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Return the product of matrices, or of stacks of them; an adjoint is the conjugate of the transposed matrix.

    ``output_type`` is the result's dtype, by default that of ``a``; the arguments not named here have no effect.

    Raises:
        ValueError: an operand should be both transposed and adjoint.
        InvalidArgumentError: an operand has fewer than two axes, or the shapes or dtypes do not fit.
    """
    for letter, transposed, adjoint in (("a", transpose_a, adjoint_a), ("b", transpose_b, adjoint_b)):
        if transposed and adjoint:
            raise ArgumentValueError(f"Only one of `transpose_{letter}` and `adjoint_{letter}` can be True.")
    first, second = map(numbers, pair(a, b, "MatMul"))
    if min(first.dim(), second.dim()) < 2:
        raise invalid_argument(f"MatMul: operands have {first.dim()} and {second.dim()} axes, should have at least 2")
    left = first.mH if adjoint_a else first.mT if transpose_a else first
    product = left @ (second.mH if adjoint_b else second.mT if transpose_b else second)
    return adopt(product if output_type is None else product.to(torch_dtype(output_type)))


@checked
def divide(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the quotient; float64 for integers of 32 and 64 bits."""
    first, second = pair(x, y, "RealDiv")
    _require_no_bool(first)
    return adopt(torch.true_divide(first.to(torch.float64) if first.dtype in _WIDE else first, second))


def _require_no_bool(dividend: torch.Tensor) -> None:
    if dividend.dtype is torch.bool:
        raise ArgumentTypeError("Invalid dtype tf.bool in __truediv__")


@checked
def divide_no_nan(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the quotient, or 0 if ``y`` is 0."""
    first, second = pair(x, y, "DivNoNan")
    if first.dtype in _WIDE:
        first, second = first.to(torch.float64), second.to(torch.float64)
    zero = second == 0
    return adopt(torch.where(zero, torch.zeros_like(first), first / torch.where(zero, torch.ones_like(second), second)))


def axes_of(value: torch.Tensor, axis: Any) -> list[int]:
    """Return the axes in an argument, each a number, an array or a tensor; all axes for None.

    Raises:
        InvalidArgumentError: there is no such axis, or one is named twice.
    """
    if axis is None:
        return list(range(value.dim()))
    axes = [int(number) for number in (axis if isinstance(axis, list | tuple) else torch.as_tensor(axis).reshape(-1))]
    for number in axes:
        if not -value.dim() <= number < value.dim():
            raise invalid_argument(f"Invalid reduction dimension ({number} for input with {value.dim()} dimension(s)")
    if len({number % value.dim() for number in axes}) != len(axes):
        raise invalid_argument(f"Invalid reduction arguments: Axes contains duplicate dimension: {axes}")
    return axes


def axis_of(axis: Any) -> int:
    """Return a single axis, passed as a number, an array or a tensor with one element.

    Raises:
        InvalidArgumentError: there are several.
        ValueError: ``axis`` is None.
    """
    if isinstance(axis, int):
        return axis
    found = tensor(axis)
    if found.numel() != 1 or found.is_floating_point():
        raise invalid_argument(f"axis must be a scalar, is {axis!r}")
    return int(found)


@checked
def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None) -> Tensor:
    """Divide ``x`` by the root of its sum of squares along ``axis``; that sum is at least ``epsilon``.

    ``dim`` is the older name of ``axis``.
    """
    value = tensor(x)
    axes = axes_of(value, axis if dim is None else dim)
    squares = (value * value.conj()).real
    total = squares.sum(axes, keepdim=True) if axes else squares
    return adopt(value * torch.rsqrt(torch.clamp(total, min=epsilon)))


@checked
def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = -1, name: str | None = None) -> Tensor:
    """Return the cross entropy of ``labels``, which sum to 1 along ``axis``, and the softmax of ``logits``."""
    given, scores = tensor(labels), tensor(logits)
    return adopt(-(given.to(scores.dtype) * functional.log_softmax(scores, axis)).sum(axis))


@checked
def sparse_softmax_cross_entropy_with_logits(labels: Any, logits: Any, name: str | None = None) -> Tensor:
    """Return the cross entropy of class numbers, one per example, and the softmax of ``logits``."""
    given, scores = tensor(labels), tensor(logits)
    return adopt(-functional.log_softmax(scores, -1).gather(-1, given.long().unsqueeze(-1)).squeeze(-1))


@checked
def softmax(logits: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Return the softmax along ``axis``, by default the last one."""
    return adopt(functional.softmax(fractions(tensor(logits)), -1 if axis is None else axis_of(axis)))


@checked
def log_softmax(logits: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Return the logarithm of ``softmax``."""
    return adopt(functional.log_softmax(fractions(tensor(logits)), -1 if axis is None else axis_of(axis)))


def _unary(
    function: Callable[[torch.Tensor], torch.Tensor], accepted: Callable[[torch.Tensor], torch.Tensor] = fractions
) -> Callable[..., Tensor]:
    @checked
    def compute(x: Any, name: str | None = None) -> Tensor:
        return adopt(function(accepted(tensor(x))))

    compute.__doc__ = f"torch's ``{getattr(function, '__name__', 'function')}`` of ``x``, element by element."
    return compute


def _binary(
    function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    accepted: Callable[[torch.Tensor], torch.Tensor] = numbers,
) -> Callable[..., Tensor]:
    @checked
    def compute(x: Any, y: Any, name: str | None = None) -> Tensor:
        operands = pair(x, y, getattr(function, "__name__", "function").capitalize())
        return adopt(function(*map(accepted, operands)))

    compute.__doc__ = f"torch's ``{getattr(function, '__name__', 'function')}`` of ``x`` and ``y``."
    return compute


def _logical(function: Callable[[torch.Tensor, torch.Tensor], torch.Tensor]) -> Callable[..., Tensor]:
    @checked
    def compute(x: Any, y: Any, name: str | None = None) -> Tensor:
        return adopt(function(*booleans(x, y)))

    compute.__doc__ = f"torch's ``{getattr(function, '__name__', 'function')}`` of booleans."
    return compute


@checked
def logical_not(x: Any, name: str | None = None) -> Tensor:
    """Return the opposite of each boolean."""
    return adopt(torch.logical_not(*booleans(x)))


@checked
def stop_gradient(input: Any, name: str | None = None) -> Tensor:
    """Return the tensor, through which no gradient passes."""
    return adopt(tensor(input).detach())


@checked
def relu(features: Any, name: str | None = None) -> Tensor:
    """Return positive numbers unchanged, and 0 for the others."""
    return adopt(functional.relu(numbers(tensor(features))))


def _sign(x: torch.Tensor) -> torch.Tensor:
    return torch.where(x != x, x, torch.sgn(x))


abs, negative, square, round, sign = (
    _unary(f, numbers) for f in (torch.abs, torch.neg, torch.square, without_gradient(torch.round), _sign)
)
sqrt, exp, floor = _unary(sqrt_of), _unary(torch.exp), _unary(without_gradient(torch.floor))
log, rsqrt, sigmoid, tanh = (_unary(f) for f in (torch.log, rsqrt_of, torch.sigmoid, torch.tanh))
is_nan, is_finite, is_inf = (_unary(f) for f in (torch.isnan, torch.isfinite, torch.isinf))
add, subtract, multiply, pow = (_binary(f) for f in (torch.add, torch.sub, torch.mul, torch.pow))
maximum, minimum, floordiv, mod = (
    _binary(f) for f in (first_if_equal(torch.maximum), first_if_equal(torch.minimum), floor_divided, torch.remainder)
)
equal, not_equal = (_binary(f, lambda value: value) for f in (torch.eq, torch.ne))
add = or_of_strings(string_functions.add)(add)
equal, not_equal = or_of_strings(string_functions.equal)(equal), or_of_strings(string_functions.not_equal)(not_equal)
less, greater, less_equal, greater_equal = (_binary(f) for f in (torch.lt, torch.gt, torch.le, torch.ge))
logical_and, logical_or, logical_xor = map(_logical, (torch.logical_and, torch.logical_or, torch.logical_xor))
sin, cos, tan, asin, acos, atan = map(_unary, (torch.sin, torch.cos, torch.tan, torch.asin, torch.acos, torch.atan))
sinh, cosh, asinh, acosh, atanh = map(_unary, (torch.sinh, torch.cosh, torch.asinh, torch.acosh, torch.atanh))
ceil, log1p, expm1, erf, reciprocal = map(
    _unary, (without_gradient(torch.ceil), torch.log1p, torch.expm1, torch.erf, reciprocal_of)
)
floormod = mod


@or_of_strings(string_functions.where, 1)
@checked
def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Tensor:
    """Return elements of ``x`` if the condition holds, else of ``y``; without both, the true indices, ``(n, ndim)``."""
    if x is None and y is None:
        return adopt(torch.nonzero(tensor(condition)))
    (chosen,), (first, second) = booleans(condition), pair(x, y, "SelectV2")
    return adopt(torch.where(chosen, first, second))


def constant_like(value: Any, number: float, dtype: Any = None) -> Tensor:
    """Return a tensor with the shape of ``value``, filled with ``number``."""
    like = tensor(value)
    return adopt(torch.full_like(like, number, dtype=like.dtype if dtype is None else torch_dtype(dtype)))


@checked
def atan2(y: Any, x: Any, name: str | None = None) -> Tensor:
    """Return the angle of the point ``(x, y)``."""
    return adopt(torch.atan2(*map(fractions, pair(y, x, "Atan2"))))


@checked
def squared_difference(x: Any, y: Any, name: str | None = None) -> Tensor:
    """Return the square of ``x - y``; for complex numbers, of its absolute value, with the same dtype."""
    first, second = pair(x, y, "SquaredDifference")
    distance = first - second
    return adopt(distance * distance.conj())


@checked
def truediv(x: Any, y: Any, name: str | None = None) -> Any:
    """Return ``x / y``; the quotient of integers is a float.

    Raises:
        TypeError: the dtypes differ, or are bool.
    """
    try:
        first, second = pair(x, y, "RealDiv")
    except ArgumentValueError as error:
        raise ArgumentTypeError(f"`x` and `y` must have the same dtype: {error}") from error
    return divide(first, second)


@checked
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


@checked
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


name_functions(globals())
