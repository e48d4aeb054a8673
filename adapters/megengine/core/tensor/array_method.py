"""Operations on the values of a single tensor: reductions, shapes, elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError, also
from collshim.megengine.core.tensor import slopes
from collshim.megengine.core.tensor.dtype import narrowed
from collshim.megengine.core.tensor.values import Value, Valued, axes_of, floating, indices, ints, require, value_of


def sum(inp: Value, axis: Any = None, keepdims: bool = False) -> Value:
    """Return the sum over axes, all by default, in the dtype of ``inp``; booleans are summed in int32."""
    if _keeps(inp, axis, keepdims):
        return inp
    dtype = torch.int32 if inp.dtype is torch.bool else inp.dtype
    return torch.sum(inp, axes_of(inp, axis), keepdim=keepdims, dtype=dtype) if inp.dim() else inp.to(dtype)


def _keeps(inp: Value, axis: Any, keepdims: bool) -> bool:
    """Return whether a reduction has no axes, and so changes nothing.

    Raises:
        AssertionError: ``axis`` means all axes, and ``keepdims`` is True.
    """
    require(axis is not None or not keepdims, "can not set axis=None and keepdims=True")
    return axis is not None and inp.dim() > 0 and not axes_of(inp, axis)


def mean(inp: Value, axis: Any = None, keepdims: bool = False) -> Value:
    """Return the mean over axes, all by default, in float32."""
    if _keeps(inp, axis, keepdims):
        return inp
    return _single(inp).mean(axes_of(inp, axis), keepdim=keepdims) if inp.dim() else _single(inp)


def prod(inp: Value, axis: Any = None, keepdims: bool = False) -> Value:
    """Return the product over axes, all by default, in the dtype of ``inp``; booleans are multiplied in int32."""
    if _keeps(inp, axis, keepdims):
        return inp
    result = inp.to(torch.int32) if inp.dtype is torch.bool else inp
    for number in sorted(axes_of(inp, axis), reverse=True):
        result = torch.prod(result, number, keepdim=keepdims, dtype=result.dtype)
    return result


def max(inp: Value, axis: Any = None, keepdims: bool = False) -> Value:
    """Return the greatest element over axes, all by default."""
    if _keeps(inp, axis, keepdims) or not inp.dim():
        return inp
    return slopes.extreme(torch.amax, inp, axes_of(inp, axis), keepdims)


def min(inp: Value, axis: Any = None, keepdims: bool = False) -> Value:
    """Return the least element over axes, all by default."""
    if _keeps(inp, axis, keepdims) or not inp.dim():
        return inp
    return slopes.extreme(torch.amin, inp, axes_of(inp, axis), keepdims)


def var(inp: Value, axis: Any = None, keepdims: bool = False) -> Value:
    """Return the variance over axes, all by default, divided by the number of elements, in float32."""
    if _keeps(inp, axis, keepdims):
        return torch.zeros_like(_single(inp))
    return torch.var(_single(inp), axes_of(inp, axis), correction=0, keepdim=keepdims)


def std(inp: Value, axis: Any = None, keepdims: bool = False) -> Value:
    """Return the square root of ``var``, in float32."""
    if _keeps(inp, axis, keepdims):
        return torch.zeros_like(_single(inp))
    return torch.std(_single(inp), axes_of(inp, axis), correction=0, keepdim=keepdims)


def _single(inp: Value) -> Value:
    return inp.to(torch.float32) if inp.dtype in (torch.float16, torch.bfloat16) else floating(inp)


def round(x: Value) -> Value:
    """Round to the nearest integers; halves are rounded away from 0."""
    value = x.detach()
    return torch.trunc(value + torch.copysign(torch.full_like(value, 0.5), value)) if x.is_floating_point() else value


def mod(x: Value, y: Value) -> Value:
    """Return the remainder of a division, with the sign of ``y`` for integers and of ``x`` for floats.

    Only ``x`` has a gradient.
    """
    y = y.detach()
    return torch.fmod(x, y) if x.is_floating_point() else torch.remainder(x, y)


def reshape(inp: Value, target_shape: Any) -> Value:
    """Return ``inp`` in a new shape, in which one length may be -1; RuntimeError if the number of elements differs."""
    return inp.reshape(ints(target_shape))


def flatten(inp: Value, start_axis: int = 0, end_axis: int = -1) -> Value:
    """Merge the axes from ``start_axis`` to ``end_axis`` into one."""
    return inp.flatten(start_axis, end_axis)


def transpose(inp: Value, pattern: Any) -> Value:
    """Permute the axes into the order of ``pattern``, in which ``"x"`` is a new axis of length 1."""
    pattern = pattern.tolist() if isinstance(pattern, torch.Tensor) else list(pattern)
    order = [int(number) for number in pattern if number != "x"]
    result = inp.permute(order)
    for place, number in enumerate(pattern):
        result = result.unsqueeze(place) if number == "x" else result
    return result


def broadcast_to(inp: Value, shape: Any) -> Value:
    """Repeat the elements along new axes and those of length 1."""
    return inp.expand(ints(shape))


def matmul(inp1: Any, inp2: Any) -> Value:
    """Return the matrix product, of batches too; AssertionError for 0-d."""
    if inp1.dim() == 0 or inp2.dim() == 0:
        raise also(ArgumentValueError, AssertionError)("matmul: an input is 0-d, should have at least one axis")
    return torch.matmul(inp1, inp2)


def get_item(inp: Value, index: Any) -> Value:
    """Return the elements that a plain index selects; steps may be negative."""
    value, found = _forwards(inp, index)
    return value[found]


def set_item(inp: Value, index: Any, new: Any) -> Value:
    """Return a copy of ``inp`` with new elements at the positions that a plain index selects."""
    result = inp.clone()
    source = new if isinstance(new, bool | int | float) else value_of(new).to(inp.dtype)
    if _is_backwards(index):
        places = torch.arange(inp.numel()).view(inp.shape)
        numbers = get_item(places, index)
        filled = torch.as_tensor(source, dtype=inp.dtype).expand(numbers.shape)
        return result.reshape(-1).index_put((numbers.reshape(-1),), filled.reshape(-1)).view(inp.shape)
    result[index] = source
    return result


def plain_index(index: Any) -> Any:
    """Convert an index to one that torch takes.

    Raises:
        RuntimeError: a tensor with axes is neither int32 nor boolean; arrays and lists may have any integers.
        ValueError: an array or a list has floats.
    """
    if isinstance(index, tuple):
        return tuple(plain_index(part) for part in index)
    if isinstance(index, slice):
        return slice(*(None if end is None else int(end) for end in (index.start, index.stop, index.step)))
    if isinstance(index, Valued):
        value = index._value
        if value.dtype is torch.bool:
            return value
        return indices(value) if value.dim() else value.long()
    if isinstance(index, np.ndarray | list):
        array = np.asarray(index)
        if array.dtype.kind == "f" and array.size:
            raise ArgumentValueError(f"the index {index} has floats, should have integers")
        return torch.as_tensor(array if array.dtype.kind == "b" else array.astype(np.int64))
    return index.item() if isinstance(index, np.generic) else index


def _is_backwards(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return any(isinstance(part, slice) and part.step is not None and part.step < 0 for part in parts)


def _forwards(inp: Value, index: Any) -> tuple[Value, Any]:
    """Replace negative steps, which torch does not support, so that the same elements are selected."""
    if not _is_backwards(index):
        return inp, index
    parts: list[Any] = list(index) if isinstance(index, tuple) else [index]
    lengths = [_axes_taken(part) for part in parts]
    axis, skipped = 0, inp.dim() - _total(lengths)
    for place, part in enumerate(parts):
        if isinstance(part, slice) and part.step is not None and part.step < 0:
            numbers = torch.arange(inp.shape[axis], device=inp.device).tolist()[part]
            inp = inp.index_select(axis, torch.tensor(numbers, dtype=torch.long, device=inp.device))
            parts[place] = slice(None)
        axis += skipped if part is Ellipsis else lengths[place]
    return inp, tuple(parts)


def _axes_taken(part: Any) -> int:
    """Return the number of axes that a part of an index applies to; 0 for Ellipsis, which applies to the rest."""
    if part is None or part is Ellipsis:
        return 0
    return part.dim() if _is_mask(part) else 1


def _is_mask(part: Any) -> bool:
    return isinstance(part, torch.Tensor) and part.dtype is torch.bool


def _total(numbers: list[int]) -> int:
    total = 0
    for number in numbers:
        total += number
    return total


def only_element(inp: Value) -> Any:
    """Return the Python number of a tensor with one element; AssertionError for any other number of elements."""
    if inp.numel() != 1:
        raise also(ArgumentTypeError, AssertionError)(
            f"a tensor of shape {tuple(inp.shape)} has {inp.numel()} elements, should have one to become a number"
        )
    return narrowed(inp.detach()).reshape(()).item()
