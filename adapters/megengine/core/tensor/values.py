"""The values of MegEngine's tensors and other operands, as torch tensors that are never written in place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError, also
from collshim.megengine.core.tensor.dtype import narrowed, promoted

Value: TypeAlias = torch.Tensor


class Valued:
    """An object that holds a value, which can be replaced."""

    _value: Value
    _device: str


def value_of(array: Any) -> Value:
    """Return the value of an operand: a MegEngine or torch tensor, an array, a number, or a list of these.

    Raises:
        TypeError: the operand is None, or not made of numbers.
    """
    if isinstance(array, Valued):
        return array._value
    if isinstance(array, torch.Tensor):
        return narrowed(array)
    if array is None:
        raise ArgumentTypeError("the operand is None and is not supported: it should be a tensor or a number")
    if hasattr(array, "__dlpack__") and not isinstance(array, np.ndarray | np.generic):
        return narrowed(torch.from_dlpack(array))
    found = np.asarray(array)
    if found.dtype == object or found.dtype.kind in "USmM":
        raise ArgumentTypeError(f"data is {array!r}, should be numbers")
    return _from_numpy(found)


def _from_numpy(array: np.ndarray[Any, Any]) -> Value:
    if array.dtype.kind == "u" and array.dtype.itemsize > 2:
        raise also(ArgumentTypeError, RuntimeError)(f"unsupported numpy dtype {array.dtype.type}: pass int32 instead")
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    return narrowed(torch.from_numpy(np.array(array, order="C")))


def operands(*arrays: Any, floats: bool = False) -> list[Value]:
    """Convert operands to their common dtype and to one device; with ``floats``, integers become float32."""
    places = [_number(array) if _is_number(array) else value_of(array) for array in arrays]
    tensors = [place for place in places if isinstance(place, torch.Tensor)]
    weak = [float if isinstance(place, float) else int for place in places if not isinstance(place, torch.Tensor)]
    dtype = promoted([tensor.dtype for tensor in tensors], weak)
    device = tensors[0].device if tensors else None
    found = [
        (place if isinstance(place, torch.Tensor) else torch.tensor(place, device=device)).to(dtype) for place in places
    ]
    return [floating(place) for place in found] if floats else found


def _is_number(array: Any) -> bool:
    return isinstance(array, bool | int | float | np.generic) and not isinstance(array, np.ndarray)


def _number(array: Any) -> Any:
    return array.item() if isinstance(array, np.generic) else array


def floating(value: Value) -> Value:
    """Convert integers to float32."""
    return value if value.is_floating_point() or value.is_complex() else value.to(torch.float32)


def only_floating(value: Value) -> Value:
    """Return ``value``; RuntimeError if it has integers or booleans."""
    if not value.is_floating_point():
        raise also(ArgumentTypeError, RuntimeError)(
            f"inp is {str(value.dtype).removeprefix('torch.')}, should be float32 or float16: use astype"
        )
    return value


def ints(numbers: Any) -> tuple[int, ...]:
    """Return the integers in a number, a list of numbers or tensors, an array, or a tensor."""
    if isinstance(numbers, Valued):
        numbers = numbers._value.tolist()
    elif isinstance(numbers, torch.Tensor | np.ndarray):
        numbers = numbers.tolist()
    return tuple(int(number) for number in numbers) if isinstance(numbers, Iterable) else (int(numbers),)


def spread(numbers: Any, count: int) -> tuple[int, ...]:
    """Return the integers in a number, which counts for each of ``count`` axes, or in a list."""
    found = ints(numbers)
    return found * count if len(found) == 1 else found


def axes_of(value: Value, axis: Any) -> tuple[int, ...]:
    """Return the axes in an argument, counted from 0; all axes for None.

    Raises:
        RuntimeError: an axis does not exist.
        AssertionError: an axis is named twice.
    """
    if axis is None:
        return tuple(range(value.dim()))
    axes = tuple(number + max(value.dim(), 1) if number < 0 else number for number in ints(axis))
    if not all(0 <= number < max(value.dim(), 1) for number in axes):
        raise also(ArgumentValueError, RuntimeError)(
            f"axis {axis} is out of bounds for tensor of dimension {value.dim()}"
        )
    require(len(set(axes)) == len(axes), f"axis {axis} contains duplicated indices")
    return axes


def require_axes(value: Value, *counts: int) -> Value:
    """Return ``value``; RuntimeError unless the number of its axes is one of ``counts``."""
    if value.dim() not in counts:
        raise also(ArgumentValueError, RuntimeError)(
            f"the shape of inp is {tuple(value.shape)}, it should have {' or '.join(map(str, counts))} axes"
        )
    return value


def indices(value: Value) -> Value:
    """Return indices as torch takes them; RuntimeError unless they are int32."""
    if value.dtype not in (torch.int32, torch.int64):  # a torch.Tensor may be int64
        raise also(ArgumentTypeError, RuntimeError)(
            f"indices are {str(value.dtype).removeprefix('torch.')}, should be int32: use astype"
        )
    return value.long()


def booleans(*values: Value) -> tuple[Value, ...]:
    """Return the operands of a logical operation; RuntimeError if one is not boolean."""
    for value in values:
        if value.dtype is not torch.bool:
            raise also(ArgumentTypeError, RuntimeError)(
                f"a logical operation needs booleans, an operand is {str(value.dtype).removeprefix('torch.')}"
            )
    return values


def require(holds: bool, text: str) -> None:
    """Raise AssertionError with this text unless ``holds``."""
    if not holds:
        raise also(ArgumentValueError, AssertionError)(text)
