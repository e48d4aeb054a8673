"""Elementwise operations (source: MegEngine 1.13.0, ``megengine.functional.elemwise``).

Two operands are first converted to one dtype: a float with any other dtype becomes float32, and so does a boolean with
any other dtype; two integer dtypes become the wider one; signed with unsigned integers are a RuntimeError. Division,
powers and transcendental functions convert integers to float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from collshim.errors import ArgumentValueError, also
from collshim.megengine.core.tensor import array_method, slopes
from collshim.megengine.core.tensor.values import Value, booleans, floating, operands, value_of
from collshim.megengine.tensor import Tensor, computes

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "clip",
    "cos",
    "cosh",
    "div",
    "equal",
    "exp",
    "expm1",
    "floor",
    "floor_div",
    "greater",
    "greater_equal",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "mul",
    "neg",
    "not_equal",
    "pow",
    "right_shift",
    "round",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "sub",
    "tan",
    "tanh",
]


def _unary(function: Callable[[Value], Value], text: str, floats: bool = False) -> Callable[[Any], Tensor]:
    def compute(x: Any) -> Value:
        value = value_of(x)
        return function(floating(value) if floats else value)

    compute.__doc__ = text
    return computes(compute)


def _binary(function: Callable[..., Value], text: str, floats: bool = False) -> Callable[[Any, Any], Tensor]:
    def compute(x: Any, y: Any) -> Value:
        return function(*operands(x, y, floats=floats))

    compute.__doc__ = text
    return computes(compute)


def _logical(function: Callable[..., Value], text: str) -> Callable[[Any, Any], Tensor]:
    def compute(x: Any, y: Any) -> Value:
        return function(*booleans(*(value_of(one) for one in (x, y))))

    compute.__doc__ = text
    return computes(compute)


add = _binary(torch.add, "x + y.")
sub = _binary(torch.sub, "x - y.")
mul = _binary(torch.mul, "x * y.")
div = _binary(torch.true_divide, "x / y.", floats=True)
floor_div = _binary(slopes.floor_divide, "x // y, rounded down.")
mod = _binary(array_method.mod, "x % y, with the sign of y for integers and of x for floats.")
pow = _binary(torch.pow, "x ** y.", floats=True)
logaddexp = _binary(torch.logaddexp, "log(exp(x) + exp(y)).", floats=True)
maximum = _binary(slopes.maximum, "The greater one.")
minimum = _binary(slopes.minimum, "The lesser one.")
left_shift = _binary(torch.bitwise_left_shift, "x << y.")
right_shift = _binary(torch.bitwise_right_shift, "x >> y.")
logical_and = _logical(torch.logical_and, "x and y.")
logical_or = _logical(torch.logical_or, "x or y.")
logical_xor = _logical(torch.logical_xor, "Either x or y.")
equal = _binary(torch.eq, "x == y, as booleans.")
not_equal = _binary(torch.ne, "x != y, as booleans.")
less = _binary(torch.lt, "x < y, as booleans.")
less_equal = _binary(torch.le, "x <= y, as booleans.")
greater = _binary(torch.gt, "x > y, as booleans.")
greater_equal = _binary(torch.ge, "x >= y, as booleans.")

neg = _unary(torch.neg, "-x.")
abs = _unary(slopes.abs_of, "The absolute value of x.")
square = _unary(torch.square, "x * x.")
round = _unary(array_method.round, "x rounded, halves away from 0.")
ceil = _unary(slopes.ceil, "x rounded up.")
floor = _unary(slopes.floor, "x rounded down.")


@computes
def logical_not(x: Any) -> Value:
    """Return not x."""
    return torch.logical_not(*booleans(value_of(x)))


@computes
def atan2(y: Any, x: Any) -> Value:
    """Return the angle of the point (x, y)."""
    return torch.atan2(*operands(y, x, floats=True))


exp = _unary(torch.exp, "e to the x.", floats=True)
expm1 = _unary(torch.expm1, "e to the x, less 1.", floats=True)
log = _unary(torch.log, "The natural logarithm.", floats=True)
log1p = _unary(torch.log1p, "The natural logarithm of 1 + x.", floats=True)
sqrt = _unary(torch.sqrt, "The square root.", floats=True)
cos = _unary(torch.cos, "Cosine.", floats=True)
sin = _unary(torch.sin, "Sine.", floats=True)
tan = _unary(torch.tan, "Tangent.", floats=True)
acos = _unary(torch.acos, "Inverse cosine.", floats=True)
asin = _unary(torch.asin, "Inverse sine.", floats=True)
atan = _unary(torch.atan, "Inverse tangent.", floats=True)
cosh = _unary(torch.cosh, "Hyperbolic cosine.", floats=True)
sinh = _unary(torch.sinh, "Hyperbolic sine.", floats=True)
tanh = _unary(torch.tanh, "Hyperbolic tangent.", floats=True)
asinh = _unary(torch.asinh, "Inverse hyperbolic sine.", floats=True)
acosh = _unary(torch.acosh, "Inverse hyperbolic cosine.", floats=True)
atanh = _unary(torch.atanh, "Inverse hyperbolic tangent.", floats=True)


@computes
def clip(x: Any, lower: Any = None, upper: Any = None) -> Value:
    """Limit ``x`` to the range from ``lower`` to ``upper``; one of them may be None, AssertionError if both are."""
    if lower is None and upper is None:
        raise also(ArgumentValueError, AssertionError)("At least one of 'lower' or 'upper' must not be None")
    result = value_of(x)
    if upper is not None:
        result = slopes.minimum(*operands(result, upper))
    return result if lower is None else slopes.maximum(*operands(result, lower))
