"""Functions whose arguments or results differ from torch's in OneFlow 0.9.0, and the methods of the same names."""

from __future__ import annotations

import operator
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch

from collshim.errors import ArgumentError, ArgumentTypeError, also

__all__ = ["FUNCTIONS", "Forms", "difference"]

_COMPARISONS = "eq ne not_equal ge gt le lt greater greater_equal logical_and logical_or logical_xor"


def _with_numbers(name: str) -> Callable[..., Any]:
    of: Any = getattr(torch, name)

    def function(input: Any, other: Any) -> Any:
        pair: tuple[Any, ...] = (input, other)
        if any(isinstance(each, torch.Tensor) for each in pair):
            pair = tuple(torch.tensor(each) if isinstance(each, bool | int | float) else each for each in pair)
        return of(*pair)

    function.__name__, function.__doc__ = name, f"Return torch's ``{name}``; either argument may be a number."
    return function


def _axes(input: Any, dim: Any) -> Any:
    """Return ``dim`` as a tuple of axes; None and an empty tuple mean all axes."""
    return (dim,) if isinstance(dim, int) else tuple(dim or ()) or tuple(range(input.dim()))


def _over_axes(name: str) -> Callable[..., Any]:
    of: Any = getattr(torch, name)

    def function(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return of(input, _axes(input, dim), keepdim)

    function.__name__, function.__doc__ = name, f"Return torch's ``{name}`` along ``dim``, or along all axes."
    return function


def _of_one_axis(name: str) -> Callable[..., Any]:
    of: Any = getattr(torch, name)

    def function(input: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        own = input.to(torch.uint8) if input.dtype is torch.bool else input
        return of(own, dim, keepdim and dim is not None)

    function.__name__, function.__doc__ = name, f"Return torch's ``{name}``, for booleans too."
    return function


def prod(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """Return the product along one or several axes; a product of integers has their dtype."""
    wanted = dtype or (torch.int64 if input.dtype is torch.bool else input.dtype)
    for axis in sorted((each % max(input.dim(), 1) for each in _axes(input, dim)), reverse=True):
        input = torch.prod(input, axis, keepdim, dtype=wanted)
    return input.to(wanted)


def norm(
    input: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, p: Any = None
) -> Any:
    """Return the norm of all elements or, with ``ord`` or ``dim``, of vectors or matrices, as NumPy does.

    Along no axes or more than two, the elements are one vector, as in releases after 0.9.0.
    """
    order = ord if p is None else p
    if isinstance(dim, list | tuple) and len(dim) not in (1, 2):
        return torch.linalg.vector_norm(input, 2 if order is None else order, dim, keepdim, dtype=dtype)
    return torch.linalg.norm(input, order, dim, keepdim, dtype=dtype)


def flip(input: Any, *dims: Any) -> Any:
    """Reverse the order along these axes: several integers, or a list or tuple of them."""
    return torch.flip(input, dims if dims and isinstance(dims[0], int) else tuple(*dims))


def floor_divide(input: Any, other: Any) -> Any:
    """Return the quotient, rounded down; a quotient of integers is rounded towards zero."""
    whole = all(not _is_fractional(each) for each in (input, other))
    return torch.div(input, other, rounding_mode="trunc" if whole else "floor")


def _is_fractional(value: Any) -> bool:
    return value.is_floating_point() if isinstance(value, torch.Tensor) else isinstance(value, float)


def difference(input: Any, other: Any, *, alpha: Any = 1) -> Any:
    """Return the difference; booleans count as 0 and 1 if the other operand is a number or has a different dtype."""
    pair = [input, other if alpha == 1 else other * alpha]
    for here, there in ((0, 1), (1, 0)):
        if isinstance(pair[here], bool) or getattr(pair[here], "dtype", None) is torch.bool:
            beside = getattr(pair[there], "dtype", torch.float32 if isinstance(pair[there], float) else torch.int64)
            pair[here] = pair[here].to(beside) if isinstance(pair[here], torch.Tensor) else int(pair[here])
    return torch.sub(*pair) if isinstance(pair[0], torch.Tensor) else torch.rsub(pair[1], pair[0])


_INTEGERS = {torch.int8, torch.int32, torch.int64}


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Return the elements of ``x`` if the condition is true there, and otherwise those of ``y``.

    ``x`` and ``y`` are tensors of the same dtype, or numbers. Beside a float, a tensor becomes float64. Without both,
    return the positions at which the condition is true.

    Raises:
        TypeError: ``x`` or ``y`` is neither a tensor nor a number.
        RuntimeError: the dtypes differ; the dtype of an integer is int64, and that of a boolean is bool.
        NotImplementedError: both are numbers of different types.
    """
    if x is None and y is None:
        return torch.where(condition)
    if getattr(condition, "dtype", None) in _INTEGERS:
        condition = condition.to(torch.bool)
    first, second = _dtype_beside(x, y), _dtype_beside(y, x)
    if None in (first, second):
        raise ArgumentTypeError(f"where: x is {type(x)} and y is {type(y)}, should be tensors or numbers")
    tensors = [each for each in (x, y) if isinstance(each, torch.Tensor)]
    if first != second:
        kind = RuntimeError if tensors else NotImplementedError
        raise also(ArgumentError, kind)(f"where: x is {first} and y is {second}, should be of one dtype")
    made = (each.to(first) if isinstance(each, torch.Tensor) else each for each in (x, y))
    return torch.where(condition, *made)


def _dtype_beside(value: Any, other: Any) -> Any:
    """Return the dtype that ``where`` uses for a tensor or a number beside another, or None for other values."""
    if isinstance(value, float):
        return torch.float64
    if isinstance(value, torch.Tensor):
        return torch.float64 if isinstance(other, float) else value.dtype
    return torch.bool if isinstance(value, bool) else torch.int64 if isinstance(value, int) else None


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _with_numbers(name) for name in _COMPARISONS.split()},
    **{name: _over_axes(name) for name in ("all", "any")},
    **{name: _of_one_axis(name) for name in ("argmax", "argmin")},
    "flip": flip,
    "floor_divide": floor_divide,
    "norm": norm,
    "prod": prod,
    "sub": difference,
    "where": where,
}
"""The functions by name; ``oneflow`` has them, and ``Tensor`` has them as methods."""


class Forms(torch.Tensor):
    """A torch tensor with OneFlow's operators and formats."""

    __array_priority__ = -1
    """With a NumPy array as the left operand, NumPy computes, and the result is an array."""

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return array[()] if return_scalar else array

    def __format__(self, format_spec: str) -> str:
        if self.dim() == 0 and format_spec:
            return format(self.item(), format_spec)
        return object.__format__(self, format_spec)

    def __mod__(self, other: Any) -> Any:
        """Return the remainder of a division rounded towards zero: it has the sign of the dividend."""
        return torch.fmod(self, other)

    def __floordiv__(self, other: Any) -> Any:
        return floor_divide(self, other)

    def __sub__(self, other: Any) -> Any:
        return difference(self, other)

    def __rsub__(self, other: Any) -> Any:
        return difference(other, self)

    def sub_(self, other: Any, *, alpha: Any = 1) -> Any:
        """Subtract in place, even a tensor from a leaf that requires a gradient, which continues to require it."""
        leaf = isinstance(other, torch.Tensor) and self.requires_grad and self.is_leaf
        with torch.no_grad() if leaf else nullcontext():
            return torch.Tensor.sub_(self, other, alpha=alpha)

    __isub__ = sub_  # pyright: ignore[reportAssignmentType]  # takes one argument

    def __and__(self, other: Any) -> Any:
        """Return whether both elements are true, whatever the dtype."""
        return FUNCTIONS["logical_and"](self, other)

    def __or__(self, other: Any) -> Any:
        """Return whether one of the elements is true, whatever the dtype."""
        return FUNCTIONS["logical_or"](self, other)

    def __xor__(self, other: Any) -> Any:
        """Return whether exactly one of the elements is true, whatever the dtype."""
        return FUNCTIONS["logical_xor"](self, other)

    __rand__, __ror__, __rxor__ = __and__, __or__, __xor__


def _without_writing(name: str) -> Callable[..., Any]:
    compute = getattr(operator, name)

    def assign(self: torch.Tensor, other: Any) -> Any:
        return compute(self, other)

    assign.__name__ = f"__i{name.strip('_')}__"
    assign.__doc__ = "Return a new tensor: only ``+=``, ``-=``, ``*=`` and ``/=`` write into the old one."
    return assign


for _name in ["mod", "pow", "floordiv", "and_", "or_", "xor"]:
    setattr(Forms, f"__i{_name.strip('_')}__", _without_writing(_name))


def _as_method(name: str) -> Callable[..., Any]:
    of = FUNCTIONS[name]

    def method(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return of(self, *args, **kwargs)

    method.__name__, method.__doc__ = name, of.__doc__
    return method


for _name in FUNCTIONS:
    setattr(Forms, _name, _as_method(_name))
