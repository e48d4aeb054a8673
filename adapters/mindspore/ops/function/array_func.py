"""Functions of ``mindspore.ops`` that make, join and reshape tensors (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from typing import cast as _typed

import torch
from torch.nn import functional

from collshim.adapting.refusing import refuse
from collshim.mindspore.common.dtype import torch_dtype
from collshim.mindspore.tensor import Tensor, settle, wrap

__all__ = [
    "arange",
    "cast",
    "cat",
    "concat",
    "depend",
    "expand_dims",
    "fill",
    "flatten",
    "full",
    "full_like",
    "one_hot",
    "ones",
    "ones_like",
    "rank",
    "reshape",
    "scalar_to_tensor",
    "shape",
    "size",
    "split",
    "squeeze",
    "stack",
    "stop_gradient",
    "tile",
    "transpose",
    "unsqueeze",
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


def full(size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """Return a tensor of this shape filled with one value, in int64 without a dtype, even for a fraction."""
    return Tensor(torch.full(_sizes(size), fill_value, dtype=torch_dtype(dtype or torch.int64)))


def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None) -> Tensor:
    """Return a tensor filled with one value, with the shape of ``input`` and its dtype, or ``dtype``."""
    return full(tuple(input.shape), fill_value, dtype=dtype or input.dtype)


def fill(type: Any, shape: Any, value: Any) -> Tensor:
    """Return a tensor of this dtype and shape filled with one value."""
    return full(shape, value, dtype=type)


def zeros_like(input: Tensor, *, dtype: Any = None) -> Tensor:
    """Return zeros with the shape of ``input`` and its dtype, or ``dtype``."""
    return zeros(tuple(input.shape), dtype or input.dtype)


def ones_like(input: Tensor, *, dtype: Any = None) -> Tensor:
    """Return ones with the shape of ``input`` and its dtype, or ``dtype``."""
    return ones(tuple(input.shape), dtype or input.dtype)


def arange(start: Any = 0, end: Any = None, step: Any = 1, *, dtype: Any = None) -> Tensor:
    """Return the numbers from ``start`` to below ``end``; without ``end``, from 0 to below ``start``."""
    first, last = (0, start) if end is None else (start, end)
    return Tensor(torch.arange(first, last, step, dtype=None if dtype is None else torch_dtype(dtype)))


def cat(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Join the tensors along ``axis``."""
    return _typed(Tensor, wrap(torch.cat(list(tensors), axis)))


concat = cat


def stack(tensors: Sequence[Tensor], axis: int = 0) -> Tensor:
    """Stack the tensors along a new axis."""
    return _typed(Tensor, wrap(torch.stack(list(tensors), axis)))


def split(tensor: Tensor, split_size_or_sections: int | Sequence[int], axis: int = 0) -> tuple[Tensor, ...]:
    """Cut the tensor along ``axis`` into pieces of one length, or of the lengths in a list."""
    sizes = split_size_or_sections if isinstance(split_size_or_sections, int) else list(split_size_or_sections)
    return _typed(tuple[Tensor, ...], wrap(torch.split(tensor, sizes, axis)))


def reshape(input: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the values in this shape."""
    return _typed(Tensor, wrap(torch.reshape(input, _sizes(shape))))


def flatten(input: Tensor, order: str = "C", *, start_dim: int = 1, end_dim: int = -1) -> Tensor:
    """Return the values with the axes from ``start_dim`` to ``end_dim`` joined into one.

    Raises:
        ValueError: ``order`` is not "C".
    """
    if order != "C":
        refuse(ValueError, f"For 'flatten', argument 'order' must be 'C': 'F' is not supported, but got {order!r}")
    return _typed(Tensor, wrap(torch.flatten(input, start_dim, end_dim)))


def squeeze(input: Tensor, axis: Any = None) -> Tensor:
    """Return the values without these axes if their length is 1; None means all axes of length 1."""
    axes = () if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    return _typed(Tensor, wrap(torch.squeeze(input, axes) if axes else torch.squeeze(input)))


def expand_dims(input_x: Tensor, axis: int) -> Tensor:
    """Return the values with a new axis of length 1 at ``axis``."""
    return _typed(Tensor, wrap(torch.unsqueeze(input_x, axis)))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Return ``expand_dims(input, dim)``."""
    return expand_dims(input, dim)


def transpose(input: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the values with the axes in this order."""
    return _typed(Tensor, wrap(torch.permute(input, tuple(dims))))


def tile(input: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the values repeated along each axis."""
    return _typed(Tensor, wrap(torch.tile(input, tuple(dims))))


def one_hot(indices: Tensor, depth: int, on_value: Any = 1, off_value: Any = 0, axis: int = -1) -> Tensor:
    """Return ``on_value`` at each index of a new axis of length ``depth``, ``off_value`` elsewhere; int64 for ints."""
    there = functional.one_hot(indices.long().clamp(0, depth - 1), depth).bool()
    there &= ((indices >= 0) & (indices < depth)).unsqueeze(-1)
    values = torch.where(there, torch.as_tensor(on_value), torch.as_tensor(off_value))
    return _typed(Tensor, wrap(values.movedim(-1, axis)))


def cast(input: Tensor, dtype: Any) -> Tensor:
    """Return the values in this dtype."""
    return _typed(Tensor, wrap(torch.as_tensor(input).to(torch_dtype(dtype))))


def scalar_to_tensor(input_x: Any, dtype: Any = torch.float32) -> Tensor:
    """Return a number as a 0-d tensor."""
    return Tensor(torch.tensor(input_x, dtype=torch_dtype(dtype)))


def depend(value: Any, expr: Any) -> Any:
    """Wait for ``expr``, and return ``value``."""
    for part in expr if isinstance(expr, list | tuple) else [expr]:
        settle(part)
    return value


def stop_gradient(value: Any) -> Any:
    """Return the value, through which no gradient flows."""
    if isinstance(value, list | tuple):
        return type(value)(map(stop_gradient, value))
    return wrap(value.detach()) if isinstance(value, torch.Tensor) else value


def shape(input_x: Tensor) -> tuple[int, ...]:
    """Return the tensor's shape."""
    return tuple(input_x.shape)


def rank(input_x: Tensor) -> int:
    """Return the number of the tensor's axes."""
    return int(input_x.dim())


def size(input_x: Tensor) -> int:
    """Return the number of the tensor's elements."""
    return int(input_x.numel())
