"""The functions of ``tf`` that also take tensors of strings: they move elements, or compare them.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar
from typing import cast as typed

import numpy as np
import torch

from collshim.tensorflow.data_types import STRING
from collshim.tensorflow.errors import UnimplementedError, invalid_argument
from collshim.tensorflow.string_tensor import StringTensor, boolean, empty_strings, string_tensor
from collshim.tensorflow.tensor import adopt

_Function = TypeVar("_Function", bound=Callable[..., Any])
_NAMES = (str, bytes)


def or_of_strings(of_strings: Callable[..., Any], place: int = 0) -> Callable[[_Function], _Function]:
    """Return a decorator: the function calls ``of_strings`` if its argument at ``place`` holds tensors of strings."""

    def decorate(function: _Function) -> _Function:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            given = (
                args[place] if len(args) > place else [part for part in kwargs.values() if type(part) is StringTensor]
            )
            return (of_strings if _is_of_strings(given) else function)(*args, **kwargs)

        return typed(_Function, call)

    return decorate


def _is_of_strings(value: Any) -> bool:
    kind = type(value)
    if kind is list or kind is tuple:
        return any(type(part) is StringTensor or type(part) in _NAMES for part in value)
    if kind is np.ndarray:
        return bool(value.dtype.kind in "USO")
    return kind is StringTensor or kind in _NAMES


def _values(value: Any) -> Any:
    return np.asarray(string_tensor(value))


def _whole(value: Any) -> Any:
    """Return numbers, a tensor or a nest of them as NumPy's array of integers."""
    return np.asarray(value.numpy() if hasattr(value, "numpy") else value, np.int64)


def _int(value: int, dtype: Any) -> Any:
    return adopt(torch.tensor(value, dtype=dtype or torch.int32))


def concat(values: Sequence[Any], axis: Any, name: str | None = None) -> StringTensor:
    """Join tensors along an axis."""
    try:
        return StringTensor(np.concatenate([_values(value) for value in values], int(axis)))
    except ValueError as error:
        raise invalid_argument(f"ConcatOp : {error}") from error


def stack(values: Sequence[Any], axis: Any = 0, name: str | None = None) -> StringTensor:
    """Stack tensors along a new axis."""
    return StringTensor(np.stack([_values(value) for value in values], int(axis)))


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str | None = None) -> list[StringTensor]:
    """Return the slices along an axis."""
    return [StringTensor(part) for part in np.moveaxis(_values(value), axis, 0)]


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str | None = None
) -> list[StringTensor]:
    """Cut a tensor into equal parts, or into parts of these lengths."""
    parts = _whole(num_or_size_splits)
    places = np.cumsum(parts)[:-1] if parts.ndim else int(parts)
    return [StringTensor(part) for part in np.split(_values(value), places, int(axis))]


def reshape(tensor: Any, shape: Any, name: str | None = None) -> StringTensor:
    """Return the elements in another shape."""
    try:
        return StringTensor(_values(tensor).reshape(_whole(shape)))
    except ValueError as error:
        raise invalid_argument(f"Input to reshape: {error}") from error


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str | None = None) -> StringTensor:
    """Return the elements with the axes in another order."""
    return StringTensor(np.transpose(_values(a), None if perm is None else _whole(perm)))


def expand_dims(input: Any, axis: Any, name: str | None = None) -> StringTensor:
    """Insert an axis of length 1."""
    return StringTensor(np.expand_dims(_values(input), int(axis)))


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> StringTensor:
    """Remove axes of length 1."""
    return StringTensor(np.squeeze(_values(input), None if axis is None else tuple(np.atleast_1d(_whole(axis)))))


def tile(input: Any, multiples: Any, name: str | None = None) -> StringTensor:
    """Repeat the tensor along each axis."""
    return StringTensor(np.tile(_values(input), _whole(multiples)))


def repeat(input: Any, repeats: Any, axis: Any = None, name: str | None = None) -> StringTensor:
    """Repeat each element."""
    return StringTensor(np.repeat(_values(input), _whole(repeats), axis))


def reverse(tensor: Any, axis: Any, name: str | None = None) -> StringTensor:
    """Reverse axes."""
    return StringTensor(np.flip(_values(tensor), tuple(np.atleast_1d(_whole(axis)))))


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> StringTensor:
    """Repeat elements along axes, up to a shape."""
    return StringTensor(np.broadcast_to(_values(input), _whole(shape)))


def gather(params: Any, indices: Any, validate_indices: Any = None, axis: Any = None, **others: Any) -> StringTensor:
    """Return the slices at these places along an axis."""
    return StringTensor(np.take(_values(params), _whole(indices), int(axis or 0)))


def boolean_mask(tensor: Any, mask: Any, axis: int | None = None, name: str | None = None) -> StringTensor:
    """Return the elements at which the mask is true."""
    chosen = np.asarray(mask.numpy() if hasattr(mask, "numpy") else mask, bool)
    return StringTensor(_values(tensor)[(slice(None),) * (axis or 0) + (chosen,)])


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> StringTensor:
    """Return the elements of ``x`` where the condition is true, and those of ``y`` elsewhere."""
    chosen = np.asarray(condition.numpy() if hasattr(condition, "numpy") else condition, bool)
    return StringTensor(np.where(chosen, _values(x), _values(y)))


def shape(input: Any, out_type: Any = None, name: str | None = None) -> Any:
    """Return the lengths of the axes."""
    return adopt(torch.tensor(_values(input).shape, dtype=out_type or torch.int32))


def size(input: Any, out_type: Any = None, name: str | None = None) -> Any:
    """Return the number of elements."""
    return _int(_values(input).size, out_type)


def rank(input: Any, name: str | None = None) -> Any:
    """Return the number of axes."""
    return _int(_values(input).ndim, None)


def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> StringTensor:
    """Return a tensor with one text in each element."""
    return string_tensor(value, tuple(np.atleast_1d(_whole(dims))))


def identity(input: Any, name: str | None = None) -> StringTensor:
    """Return the same elements."""
    return string_tensor(input)


def equal(x: Any, y: Any, name: str | None = None) -> Any:
    """Return whether elements are equal."""
    return boolean(_values(x) == _values(y))


def not_equal(x: Any, y: Any, name: str | None = None) -> Any:
    """Return whether elements differ."""
    return boolean(_values(x) != _values(y))


def add(x: Any, y: Any, name: str | None = None) -> StringTensor:
    """Append each text of ``y`` to that of ``x``."""
    return StringTensor(_values(x) + _values(y))


def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> StringTensor:
    """Return a part of a tensor: ``size`` elements from ``begin`` along each axis, or all that follow for -1."""
    lengths = zip(_whole(begin).tolist(), _whole(size).tolist(), strict=True)
    return StringTensor(_values(input_)[tuple(slice(at, None if count < 0 else at + count) for at, count in lengths)])


def zeros_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> StringTensor:
    """Return empty strings in the shape of ``input``."""
    return empty_strings(_values(input).shape)


def cast(x: Any, dtype: Any, name: str | None = None) -> StringTensor:
    """Return the same strings.

    Raises:
        UnimplementedError: ``dtype`` is not ``tf.string``.
    """
    if dtype is not STRING and dtype != "string":
        raise UnimplementedError(None, None, f"Cast string to {dtype} is not supported: use tf.strings.to_number")
    return string_tensor(x)


def gather_nd(params: Any, indices: Any, batch_dims: int = 0, name: str | None = None) -> StringTensor:
    """Return the elements, or slices, at positions."""
    return StringTensor(_values(params)[tuple(np.moveaxis(_whole(indices), -1, 0))])
