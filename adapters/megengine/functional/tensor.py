"""Creation and reshaping of tensors (source: MegEngine 1.13.0, ``megengine.functional.tensor``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError, also
from collshim.megengine.core.tensor import array_method
from collshim.megengine.core.tensor.dtype import torch_dtype
from collshim.megengine.core.tensor.values import Value, axes_of, indices, ints, operands, value_of
from collshim.megengine.device import get_default_device, torch_device
from collshim.megengine.tensor import Tensor, computes, wrapped

__all__ = [
    "arange",
    "broadcast_to",
    "concat",
    "cond_take",
    "copy",
    "cumsum",
    "diag",
    "expand_dims",
    "eye",
    "flatten",
    "full",
    "full_like",
    "gather",
    "linspace",
    "meshgrid",
    "ones",
    "ones_like",
    "repeat",
    "reshape",
    "roll",
    "scatter",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "tile",
    "transpose",
    "where",
    "zeros",
    "zeros_like",
]

reshape = computes(array_method.reshape)
transpose = computes(array_method.transpose)
flatten = computes(array_method.flatten)
broadcast_to = computes(array_method.broadcast_to)


def _made(value: Value, dtype: Any, device: str | None) -> Tensor:
    name = str(device or get_default_device())
    found = value if dtype is None else value.to(torch_dtype(dtype))
    result: Tensor = wrapped(found.to(torch_device(name)), name)
    return result


def _number(end: Any) -> Any:
    return end.item() if isinstance(end, Tensor | np.generic | np.ndarray) else end


def arange(start: Any = 0, stop: Any = None, step: Any = 1, *, dtype: Any = "float32", device: Any = None) -> Tensor:
    """Return the numbers from ``start`` up to, but not including, ``stop``; a single argument is ``stop``."""
    first, last = (0, start) if stop is None else (start, stop)
    return _made(torch.arange(_number(first), _number(last), _number(step)), dtype, device)


def linspace(start: Any, stop: Any, num: Any, *, dtype: Any = "float32", device: Any = None) -> Tensor:
    """Return ``num`` equally spaced numbers from ``start`` to ``stop``, inclusive."""
    return _made(torch.linspace(_number(start), _number(stop), int(num)), dtype, device)


def eye(N: Any, M: Any = None, *, dtype: Any = "float32", device: Any = None) -> Tensor:
    """Return a matrix with ``N`` rows and ``M`` columns (``N`` by default), with ones on the diagonal."""
    lengths = ints(N) if M is None else (int(N), int(M))
    return _made(torch.eye(lengths[0], lengths[-1]), dtype, device)


def full(shape: Any, value: Any, *, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a tensor full of one number; the default dtype is int32 for an int and float32 for a float."""
    return _made(value_of(value).expand(ints(shape)).clone(), dtype, device)


def ones(shape: Any, *, dtype: Any = "float32", device: Any = None) -> Tensor:
    """Return a tensor of ones."""
    return _made(torch.ones(ints(shape)), dtype, device)


def zeros(shape: Any, *, dtype: Any = "float32", device: Any = None) -> Tensor:
    """Return a tensor of zeros."""
    return _made(torch.zeros(ints(shape)), dtype, device)


@computes
def zeros_like(inp: Any) -> Value:
    """Return zeros with the shape and dtype of ``inp``."""
    return torch.zeros_like(value_of(inp))


@computes
def ones_like(inp: Any) -> Value:
    """Return ones with the shape and dtype of ``inp``."""
    return torch.ones_like(value_of(inp))


@computes
def full_like(inp: Any, value: Any) -> Value:
    """Return a tensor full of one number, with the shape and dtype of ``inp``."""
    return torch.full_like(value_of(inp), value)


@computes
def diag(inp: Value, k: int = 0) -> Value:
    """Return a matrix with ``inp`` on its k-th diagonal; if ``inp`` is a matrix, return its k-th diagonal."""
    return torch.diag(inp.reshape(1) if inp.dim() == 0 else inp, k)


@computes
def concat(inps: Sequence[Any], axis: int = 0, device: Any = None) -> Value:
    """Join tensors along an axis."""
    found = operands(*inps)
    return found[0] if len(found) == 1 else torch.cat(found, axis)


@computes
def stack(inps: Sequence[Any], axis: int = 0, device: Any = None) -> Value:
    """Join tensors of the same shape along a new axis."""
    return torch.stack(operands(*inps), axis)


@computes
def split(inp: Value, nsplits_or_sections: Any, axis: int = 0) -> tuple[Value, ...]:
    """Split ``inp`` along an axis into a number of parts, the last of which may be shorter, or before given indices."""
    if isinstance(nsplits_or_sections, int):
        return tuple(torch.tensor_split(inp, nsplits_or_sections, axis))
    return tuple(torch.tensor_split(inp, list(ints(nsplits_or_sections)), axis))


@computes
def gather(inp: Value, axis: int, index: Value) -> Value:
    """Return for each index in ``index`` the element of ``inp`` at that index along an axis."""
    return torch.gather(inp, axis, indices(index))


@computes
def scatter(inp: Value, axis: int, index: Value, source: Value) -> Value:
    """Return a copy of ``inp`` with the elements of ``source`` at the indices in ``index`` along an axis."""
    return torch.scatter(inp, axis, indices(index), source.to(inp.dtype))


@computes
def where(mask: Value, x: Any, y: Any) -> Value:
    """Return the elements of ``x`` if ``mask`` is true there, and otherwise those of ``y``."""
    for name, operand in {"mask": mask, "x": x, "y": y}.items():
        if not isinstance(operand, torch.Tensor):
            raise ArgumentTypeError(f"input {name} must be a tensor, it is {operand!r}")
    first, second = operands(x, y)
    return torch.where(_mask(mask), first, second)


@computes
def cond_take(mask: Value, x: Value) -> tuple[Value, Value]:
    """Return the elements whose ``mask`` is true, flattened, and their indices in the flattened tensor, as int32."""
    return x[_mask(mask)], mask.reshape(-1).nonzero().reshape(-1)


@computes
def swapaxes(inp: Value, axis1: int, axis2: int) -> Value:
    """Swap two axes."""
    return inp.transpose(axis1, axis2)


@computes
def expand_dims(inp: Value, axis: Any) -> Value:
    """Insert axes of length 1 at these positions of the result."""
    numbers = ints(axis)
    ndim = inp.dim() + len(numbers)
    for number in sorted(each + ndim if each < 0 else each for each in numbers):
        inp = inp.unsqueeze(number)
    return inp


@computes
def squeeze(inp: Value, axis: Any = None) -> Value:
    """Remove these axes of length 1; for None, all axes of length 1.

    Raises:
        RuntimeError: an axis has a different length.
    """
    if axis is None:
        return inp.squeeze()
    axes = axes_of(inp, axis)
    if any(inp.shape[number] != 1 for number in axes if inp.dim()):
        raise also(ArgumentValueError, RuntimeError)(
            f"squeeze: axes {axes} of shape {tuple(inp.shape)} should be 1 long"
        )
    return inp.squeeze(axes)


@computes
def repeat(inp: Value, repeats: int, axis: int | None = None) -> Value:
    """Repeat each element, or each slice along ``axis``, ``repeats`` times in a row."""
    return torch.repeat_interleave(inp, int(repeats), axis)


@computes
def tile(inp: Value, reps: Any) -> Value:
    """Repeat the whole tensor ``reps`` times along each axis."""
    return torch.tile(inp, ints(reps))


def copy(inp: Any, device: str | None = None) -> Tensor:
    """Copy ``inp`` to the device of this name; for None, on its own device."""
    found: Tensor = computes(torch.clone)(inp)
    return found if device is None else found.to(device)


@computes
def roll(inp: Value, shift: Any, axis: Any = None) -> Value:
    """Shift the elements along axes, from the end to the beginning; for None, in the flattened tensor."""
    return torch.roll(inp, ints(shift), () if axis is None else ints(axis))


@computes
def cumsum(inp: Value, axis: int) -> Value:
    """Return the cumulative sums along an axis."""
    return torch.cumsum(inp, axis, dtype=torch.int32 if inp.dtype is torch.bool else inp.dtype)


@computes
def meshgrid(*inputs: Value, indexing: str = "xy") -> tuple[Value, ...]:
    """Return the coordinates of a grid: axis 0 is along the second input for ``"xy"``, along the first for ``"ij"``."""
    return tuple(torch.meshgrid(*inputs, indexing=indexing))


def _mask(value: Value) -> Value:
    if value.dtype is not torch.bool:
        raise ArgumentValueError(f"mask must be bool, it is {str(value.dtype).removeprefix('torch.')}")
    return value
