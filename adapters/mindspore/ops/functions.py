"""Functions of ``mindspore.ops`` that compute between collectives, and their primitives (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch

from collshim.mindspore.common.dtype import torch_dtype
from collshim.mindspore.ops.primitive import Primitive
from collshim.mindspore.tensor import Tensor, settle, wrapped

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
    """Zeros in this shape, float32 without a dtype."""
    return Tensor(torch.zeros(_sizes(size), dtype=torch_dtype(dtype or torch.float32)))


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Ones in this shape, float32 without a dtype."""
    return Tensor(torch.ones(_sizes(shape), dtype=torch_dtype(dtype or torch.float32)))


def zeros_like(input: Tensor, *, dtype: Any = None) -> Tensor:
    """Zeros in its shape and dtype."""
    return zeros(tuple(input.shape), dtype or input.dtype)


def ones_like(input: Tensor, *, dtype: Any = None) -> Tensor:
    """Ones in its shape and dtype."""
    return ones(tuple(input.shape), dtype or input.dtype)


def cat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors, joined along ``axis``."""
    return cast(Tensor, wrapped(torch.cat(list(tensors), axis)))


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """The tensors, along a new axis."""
    return cast(Tensor, wrapped(torch.stack(list(tensors), axis)))


def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """The tensor cut along ``axis``: into pieces of that length, or of those lengths."""
    sizes = split_size_or_sections if isinstance(split_size_or_sections, int) else list(split_size_or_sections)
    return cast(tuple[Tensor, ...], wrapped(torch.split(tensor, sizes, axis)))


def reshape(input: Tensor, shape: Sequence[int]) -> Tensor:
    """Its values in this shape."""
    return cast(Tensor, wrapped(torch.reshape(input, _sizes(shape))))


def cast_(input: Tensor, dtype: Any) -> Tensor:
    """Its values in this dtype: ``ops.cast``."""
    return cast(Tensor, wrapped(input.to(torch_dtype(dtype))))


def depend(value: Any, expr: Any) -> Any:
    """``value``, once ``expr`` is there."""
    for part in expr if isinstance(expr, list | tuple) else [expr]:
        settle(part)
    return value


def add(input: Any, other: Any) -> Tensor:
    """The sum, element by element."""
    return cast(Tensor, wrapped(input + other))


def mul(input: Any, other: Any) -> Tensor:
    """The product, element by element."""
    return cast(Tensor, wrapped(input * other))


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The product of matrices, in batches."""
    return cast(Tensor, wrapped(torch.matmul(input, other)))


class _Computation(Primitive):
    """A primitive that calls a function."""

    _function: Callable[..., Any]

    def __init__(self) -> None:
        super().__init__(type(self).__name__)

    def __call__(self, *args: Any) -> Any:
        """What the function gives."""
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
    """The tensor itself."""

    def __init__(self) -> None:
        super().__init__("Identity")

    def __call__(self, x: Tensor) -> Tensor:
        """The tensor."""
        return x


class MatMul(Primitive):
    """The product of two matrices, each turned first where that is said."""

    def __init__(self, transpose_a: bool = False, transpose_b: bool = False) -> None:
        super().__init__("MatMul")
        self.add_prim_attr("transpose_a", transpose_a)
        self.add_prim_attr("transpose_b", transpose_b)

    def __call__(self, x: Tensor, y: Tensor) -> Tensor:
        """The product."""
        left = torch.swapaxes(x, -1, -2) if self.attrs["transpose_a"] else x
        right = torch.swapaxes(y, -1, -2) if self.attrs["transpose_b"] else y
        return matmul(left, right)  # type: ignore[arg-type]
