"""TensorFlow's functions that make tensors of given numbers. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from typing import Any

import torch

from collshim.errors import ArgumentValueError
from collshim.tensorflow import string_functions
from collshim.tensorflow.arithmetic import constant_like, pair, tensor
from collshim.tensorflow.arrays import lengths_of
from collshim.tensorflow.constants import constant, is_of_strings, torch_dtype
from collshim.tensorflow.data_types import STRING
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.string_functions import or_of_strings
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name


@checked
def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return a tensor with a new axis of length ``depth``: 1 at each index, 0 elsewhere.

    The dtype is that of ``on_value`` or ``off_value`` by default, or float32 if there is neither.

    Raises:
        TypeError: ``dtype`` cannot hold a value.
        ValueError: a value is a tensor of a different dtype.
        InvalidArgumentError: the indices are not integers.
    """
    places = tensor(indices)
    if places.is_floating_point() and places.numel():
        raise invalid_argument(f"Value for attr 'TI' of {dtype_name(places.dtype)} is not an integer dtype")
    hot = places.long().unsqueeze(-1) == torch.arange(int(depth))
    kinds = [tensor(value).dtype for value in (on_value, off_value) if value is not None]
    kind = torch_dtype(dtype) if dtype is not None else kinds[0] if kinds else torch.float32
    on, off = (
        tensor(value, kind)
        for value in (
            _or(on_value, True if kind is torch.bool else 1),
            _or(off_value, False if kind is torch.bool else 0),
        )
    )
    return adopt(torch.where(hot, on, off).movedim(-1, -1 if axis is None else axis))


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


@checked
def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """Return the numbers from ``start`` up to, but not including, ``limit``; a single argument is the limit."""
    first, last = (0, start) if limit is None else (start, limit)
    numbers = [tensor(number) for number in (first, last, delta)]
    floats = [number.dtype for number in numbers if number.is_floating_point()]
    wide = torch.int64 if any(number.dtype is torch.int64 for number in numbers) else torch.int32
    kind = torch_dtype(dtype) if dtype is not None else floats[0] if floats else wide
    return adopt(torch.arange(*[number.item() for number in numbers], dtype=kind))


@checked
def zeros(shape: Any, dtype: Any = torch.float32, name: str | None = None, layout: Any = None) -> Tensor:
    """Return zeros of ``shape``, or empty strings; float32 by default."""
    if is_of_strings(dtype):
        return constant("", STRING, lengths_of(shape))
    return _fill(shape, 0, dtype)


@checked
def ones(shape: Any, dtype: Any = torch.float32, name: str | None = None, layout: Any = None) -> Tensor:
    """Return ones of ``shape``; float32 by default."""
    return _fill(shape, 1, dtype)


@or_of_strings(string_functions.fill, 1)
@checked
def fill(dims: Any, value: Any, name: str | None = None, layout: Any = None) -> Tensor:
    """Return a tensor of shape ``dims`` filled with ``value``.

    Raises:
        ValueError: a length is negative.
    """
    return _fill(dims, value, None)


def _fill(dims: Any, value: Any, dtype: Any) -> Tensor:
    lengths = lengths_of(dims)
    if any(length < 0 for length in lengths):
        raise ArgumentValueError(f"shape is {lengths}: Dimension {min(lengths)} must be >= 0")
    return constant(bool(value) if dtype is not None and torch_dtype(dtype) is torch.bool else value, dtype, lengths)


@or_of_strings(string_functions.zeros_like)
@checked
def zeros_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Tensor:
    """Return zeros with the shape and dtype of ``input``."""
    return constant_like(input, 0, dtype)


@checked
def ones_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Tensor:
    """Return ones with the shape and dtype of ``input``."""
    return constant_like(input, 1, dtype)


@checked
def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = torch.float32,
    name: str | None = None,
) -> Tensor:
    """Return a matrix with ones on its diagonal, or a batch of them."""
    rows = int(num_rows)
    one = torch.eye(rows, rows if num_columns is None else int(num_columns), dtype=torch_dtype(dtype))
    return adopt(one if batch_shape is None else one.expand(*lengths_of(batch_shape), *one.shape).clone())


@checked
def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """Return ``num`` equally spaced numbers from ``start`` to ``stop``, inclusive, along a new axis.

    Integers give float64.
    """
    first, last = torch.broadcast_tensors(*pair(start, stop, "LinSpace"))
    if not (first.is_floating_point() or first.is_complex()):
        first, last = first.double(), last.double()
    steps = torch.linspace(0, 1, int(num), dtype=torch.float64)
    shape = [-1, *[1] * first.dim()]
    numbers = (first + (last - first) * steps.reshape(shape)).to(first.dtype)
    return adopt(numbers.movedim(0, axis))
