"""Functions of ``mindspore.ops`` for use between collectives, and their primitives (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from collshim.mindspore.common.dtype import torch_dtype
from collshim.mindspore.ops.primitive import Primitive
from collshim.mindspore.tensor import Tensor, settle, wrap

__all__ = [
    "Add",
    "Cast",
    "Depend",
    "Identity",
    "MatMul",
    "Mul",
    "Reshape",
    "add",
    "cast_",
    "cat",
    "depend",
    "matmul",
    "mul",
    "ones",
    "ones_like",
    "reshape",
    "split",
    "stack",
    "zeros",
    "zeros_like",
]


def _sizes(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


def zeros(size: Any, dtype: Any = None) -> Tensor:
    """Return zeros of this shape; float32 without a dtype."""
    return Tensor(torch.zeros(_sizes(size), dtype=torch_dtype(dtype or torch.float32)))


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Return ones of this shape; float32 without a dtype."""
    return Tensor(torch.ones(_sizes(shape), dtype=torch_dtype(dtype or torch.float32)))


def zeros_like(input: Tensor, *, dtype: Any = None) -> Tensor:
    """Return zeros with the shape and dtype of ``input``, or another dtype."""
    return zeros(tuple(input.shape), dtype or input.dtype)


def ones_like(input: Tensor, *, dtype: Any = None) -> Tensor:
    """Return ones with the shape and dtype of ``input``, or another dtype."""
    return ones(tuple(input.shape), dtype or input.dtype)


def cat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join the tensors along ``axis``."""
    return cast(Tensor, wrap(torch.cat(list(tensors), axis)))


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Stack the tensors along a new axis."""
    return cast(Tensor, wrap(torch.stack(list(tensors), axis)))


def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Cut the tensor along ``axis`` into pieces of that length, or of those lengths."""
    sizes = split_size_or_sections if isinstance(split_size_or_sections, int) else list(split_size_or_sections)
    return cast(tuple[Tensor, ...], wrap(torch.split(tensor, sizes, axis)))


def reshape(input: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the values in this shape."""
    return cast(Tensor, wrap(torch.reshape(input, _sizes(shape))))


def cast_(input: Tensor, dtype: Any) -> Tensor:
    """Return the values in this dtype; it is ``ops.cast``."""
    return cast(Tensor, wrap(input.to(torch_dtype(dtype))))


def depend(value: Any, expr: Any) -> Any:
    """Wait for ``expr``, and return ``value``."""
    for part in expr if isinstance(expr, list | tuple) else [expr]:
        settle(part)
    return value


def add(input: Any, other: Any) -> Tensor:
    """Return the sum, element by element."""
    return cast(Tensor, wrap(input + other))


def mul(input: Any, other: Any) -> Tensor:
    """Return the product, element by element."""
    return cast(Tensor, wrap(input * other))


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Return the product of matrices, or of batches of them."""
    return cast(Tensor, wrap(torch.matmul(input, other)))


class _Computation(Primitive):
    """A primitive that calls a function."""

    _function: Callable[..., Any]

    def __init__(self) -> None:
        super().__init__(type(self).__name__)

    def __call__(self, *args: Any) -> Any:
        """Return the function's result."""
        return type(self)._function(*args)


class Add(_Computation):
    """``ops.add``."""

    _function = staticmethod(add)


class Mul(_Computation):
    """``ops.mul``."""

    _function = staticmethod(mul)


class Cast(_Computation):
    """``ops.cast``."""

    _function = staticmethod(cast_)


class Reshape(_Computation):
    """``ops.reshape``."""

    _function = staticmethod(reshape)


class Depend(_Computation):
    """``ops.depend``."""

    _function = staticmethod(depend)


class Identity(Primitive):
    """The identity."""

    def __init__(self) -> None:
        super().__init__("Identity")

    def __call__(self, x: Tensor) -> Tensor:
        """Return the tensor itself."""
        return x


class MatMul(Primitive):
    """The product of two matrices, each optionally transposed first."""

    def __init__(self, transpose_a: bool = False, transpose_b: bool = False) -> None:
        super().__init__("MatMul")
        self.add_prim_attr("transpose_a", transpose_a)
        self.add_prim_attr("transpose_b", transpose_b)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the product."""
        left = torch.swapaxes(x, -1, -2) if self.attrs["transpose_a"] else x
        right = torch.swapaxes(y, -1, -2) if self.attrs["transpose_b"] else y
        return matmul(left, right)  # type: ignore[arg-type]
