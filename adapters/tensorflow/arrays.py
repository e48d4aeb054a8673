"""TensorFlow's functions that create, join, split and rearrange tensors, over torch. Gradients are torch's.

Each takes arrays, numbers, variables and lists, and returns tensors. Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow import string_functions
from collshim.tensorflow.arithmetic import axis_of, has_own_dtype, matched, tensor
from collshim.tensorflow.arithmetic import tensor as as_tensor
from collshim.tensorflow.constants import constant
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.string_functions import or_of_strings
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name, plain
from collshim.tensorflow.tensor_shape import TensorShape


@or_of_strings(string_functions.concat)
@checked
def concat(values: Any, axis: Any, name: str | None = "concat") -> Tensor:
    """Concatenate tensors along ``axis``, which may be negative; a single tensor is copied, whatever its axes.

    Raises:
        InvalidArgumentError: the tensors are scalars; there is no such axis; dtypes, or lengths of other axes, differ.
    """
    parts = _alike(values if isinstance(values, list | tuple) else [values])
    if len(parts) == 1:
        return adopt(parts[0].clone())
    number, dim = axis_of(axis), parts[0].dim()
    if dim == 0:
        raise invalid_argument("ConcatOp : Can't concatenate scalars (use tf.stack instead)")
    if not -dim <= number < dim:
        raise invalid_argument(
            f"ConcatOp : Expected concatenating dimensions in the range [{-dim}, {dim}), but got {number}"
        )
    _require_one_dtype(parts)
    for place, part in enumerate(parts):
        fits = part.dim() == dim and all(part.shape[i] == parts[0].shape[i] for i in range(dim) if i != number % dim)
        if not fits:
            raise invalid_argument(
                f"ConcatOp : Dimensions of inputs should match: shape[0] = {list(parts[0].shape)} vs. "
                f"shape[{place}] = {list(part.shape)}"
            )
    return adopt(torch.cat(parts, number))


def _alike(values: Any) -> list[torch.Tensor]:
    """Convert values to tensors, see ``matched``; a list of numbers is one list for ``tf.constant``."""
    if not any(map(has_own_dtype, values)) and not any(isinstance(one, list | tuple) for one in values):
        return [plain(one) for one in tensor(list(values)).unbind(0)]
    return matched(values)


def _require_one_dtype(parts: Sequence[torch.Tensor]) -> None:
    dtypes = [dtype_name(part.dtype) for part in parts]
    if len(set(dtypes)) > 1:
        raise invalid_argument(f"cannot compute ConcatV2: the tensors have dtypes {dtypes}, should all have one")


@or_of_strings(string_functions.stack)
@checked
def stack(values: Any, axis: Any = 0, name: str = "stack") -> Tensor:
    """Stack tensors of the same shape and dtype along a new axis.

    Raises:
        ValueError: there is no such axis.
        InvalidArgumentError: shapes or dtypes differ.
    """
    if isinstance(values, list | tuple) and not values:
        return constant([])
    parts, number = _alike(values), axis_of(axis)
    _require_one_dtype(parts)
    count = parts[0].dim() + 1
    if not -count <= number < count:
        raise ArgumentValueError(f"Argument `axis` = {number} not in range [{-count}, {count})")
    return adopt(torch.stack(parts, number))


@or_of_strings(string_functions.unstack)
@checked
def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """Return the slices along ``axis``, without that axis.

    Raises:
        ValueError: there is no such axis.
        InvalidArgumentError: ``num`` is not the number of slices.
    """
    whole = tensor(value)
    if not -whole.dim() <= axis < whole.dim():
        raise ArgumentValueError(f"Argument `axis` = {axis} not in range [{-whole.dim()}, {whole.dim()})")
    if num is not None and num != whole.shape[axis]:
        raise invalid_argument(f"Input shape axis {axis} must equal {num}, got shape {list(whole.shape)}")
    return [adopt(part) for part in whole.unbind(axis)]


@or_of_strings(string_functions.split)
@checked
def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Split ``value`` along ``axis`` into equal parts, or into parts of these lengths, one of which may be -1.

    Raises:
        InvalidArgumentError: the axis cannot be split into equal parts.
    """
    whole, axis = tensor(value), axis_of(axis)
    length = whole.shape[axis]
    if isinstance(num_or_size_splits, int | np.integer):
        if num_or_size_splits < 1:
            raise invalid_argument(f"Value for attr 'num_split' of {num_or_size_splits} must be at least minimum 1")
        if length % num_or_size_splits:
            raise invalid_argument(
                f"Number of ways to split should evenly divide the split dimension, but got split_dim {axis} "
                f"(size = {length}) and num_split {num_or_size_splits}"
            )
        return [adopt(part) for part in whole.chunk(int(num_or_size_splits), axis)]
    sizes = lengths_of(num_or_size_splits)
    rest = length - sum(size for size in sizes if size >= 0)
    return [adopt(part) for part in whole.split([rest if size < 0 else size for size in sizes], axis)]


def lengths_of(shape: Any) -> list[int]:
    """Return a shape, passed as an int, several ints or a tensor of ints, as a list."""
    if isinstance(shape, int) or getattr(shape, "ndim", None) == 0:
        return [int(shape)]
    return [int(length) for length in shape]


@or_of_strings(string_functions.reshape)
@checked
def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return the tensor with its elements in ``shape``, in which one length may be -1.

    Raises:
        InvalidArgumentError: the shape has a different number of elements.
    """
    value = as_tensor(tensor)
    try:
        return adopt(value.reshape(lengths_of(shape)))
    except RuntimeError as error:
        raise invalid_argument(_why_no_shape(value.numel(), lengths_of(shape))) from error


def _why_no_shape(count: int, lengths: list[int]) -> str:
    """Return TensorFlow's words for a shape that ``count`` values cannot have."""
    for place, length in enumerate(lengths):
        if length < -1:
            return f"Size {place} must be non-negative, not {length}"
    open_ = [place for place, length in enumerate(lengths) if length == -1]
    if len(open_) > 1:
        return f"Only one input size may be -1, not both {open_[0]} and {open_[1]}"
    wanted = math.prod(length for length in lengths if length != -1)
    needs = f"requires a multiple of {wanted}" if open_ and wanted else f"has {wanted}"
    return f"Input to reshape is a tensor with {count} values, but the requested shape {needs}"


@or_of_strings(string_functions.transpose)
@checked
def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> Tensor:
    """Return the tensor with its axes in the order of ``perm``, by default reversed."""
    value = tensor(a)
    value = value.permute(lengths_of(perm) if perm is not None else list(reversed(range(value.dim()))))
    return adopt(value.conj().resolve_conj() if conjugate else value)


@or_of_strings(string_functions.expand_dims)
@checked
def expand_dims(input: Any, axis: Any, name: str | None = None) -> Tensor:
    """Insert a new axis of length 1."""
    return adopt(tensor(input).unsqueeze(axis_of(axis)))


@or_of_strings(string_functions.squeeze)
@checked
def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Remove all axes of length 1, or only ``axis``; no axes mean all.

    Raises:
        InvalidArgumentError: an axis does not exist, or has a different length.
    """
    value, axes = tensor(input), [] if axis is None else lengths_of(axis)
    if not axes:
        return adopt(value.squeeze())
    for number in axes:
        if value.shape[number] != 1:
            raise invalid_argument(
                f"Can not squeeze dim[{number}], expected a dimension of 1, got {value.shape[number]}"
            )
    return adopt(value.squeeze(tuple(axes)))


@or_of_strings(string_functions.tile)
@checked
def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Repeat a tensor along each axis.

    Raises:
        InvalidArgumentError: there is not one number for each axis.
    """
    value, counts = tensor(input), lengths_of(multiples)
    if len(counts) != value.dim():
        raise invalid_argument(f"Expected multiples argument to be a vector of length {value.dim()} but got {counts}")
    return adopt(value.repeat(counts))


@or_of_strings(string_functions.broadcast_to)
@checked
def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Broadcast a tensor to ``shape``, along axes of length 1 and new leading axes."""
    return adopt(tensor(input).broadcast_to(lengths_of(shape)).clone())


@or_of_strings(string_functions.shape)
@checked
def shape(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:
    """Return the lengths of the axes as a tensor."""
    return constant(list(tensor(input).shape), torch.int32 if out_type is None else out_type)


@or_of_strings(string_functions.size)
@checked
def size(input: Any, out_type: Any = None, name: str | None = None) -> Tensor:
    """Return the number of elements as a tensor."""
    return constant(tensor(input).numel(), torch.int32 if out_type is None else out_type)


@or_of_strings(string_functions.rank)
@checked
def rank(input: Any, name: str | None = None) -> Tensor:
    """Return the number of axes as a tensor."""
    return constant(tensor(input).dim())


@checked
def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return ``x`` if it has ``shape``, in which None is any length.

    Raises:
        InvalidArgumentError: ``x`` has a different shape.
    """
    found, wanted = convert_to_tensor(x), TensorShape(shape)
    if not wanted.is_compatible_with(found.shape):
        raise invalid_argument(
            f"Shape of tensor input {list(found.shape)} is not compatible with expected shape {list(wanted)}."
        )
    return found


@or_of_strings(string_functions.repeat)
@checked
def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Return a tensor with each row along ``axis`` repeated ``repeats`` times.

    Raises:
        InvalidArgumentError: ``repeats`` is neither one number nor one number for each row.
    """
    counts, value = tensor(repeats), tensor(input)
    if counts.is_floating_point():
        raise ArgumentTypeError(
            f"Argument `repeats` must be of type integer. Received dtype {dtype_name(counts.dtype)}"
        )
    number = counts.long() if counts.dim() else int(counts)
    return adopt(torch.repeat_interleave(value if value.dim() else value.reshape(1), number, axis))


@or_of_strings(string_functions.reverse)
@checked
def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Return a tensor with the elements in reverse order along these axes."""
    return adopt(as_tensor(tensor).flip(lengths_of(axis)))


@or_of_strings(string_functions.slice_)
@checked
def slice_(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Return a part of a tensor: for each axis, ``size`` elements from ``begin``; a size of -1 means all that follow.

    Raises:
        InvalidArgumentError: the tensor has no such part, or there is not one number for each axis.
    """
    found, places, counts = tensor(input_), lengths_of(begin), lengths_of(size)
    if not len(places) == len(counts) == found.dim():
        raise invalid_argument(
            f"Expected begin and size arguments to be 1-D tensors of size {found.dim()}, but got shapes "
            f"{[len(places)]} and {[len(counts)]} instead."
        )
    for axis, (first, count) in enumerate(zip(places, counts, strict=True)):
        if not 0 <= first <= found.shape[axis]:
            raise invalid_argument(f"Expected begin[{axis}] in [0, {found.shape[axis]}], but got {first}")
        found = found.narrow(axis, first, found.shape[axis] - first if count == -1 else count)
    return adopt(found)


@checked
def meshgrid(*args: Any, **kwargs: Any) -> list[Tensor]:
    """Return the coordinates of a grid, one tensor for each axis; ``indexing`` is ``"xy"`` or ``"ij"``.

    Raises:
        ValueError: ``indexing`` is anything else.
        TypeError: there is an unknown keyword.
        InvalidArgumentError: the dtypes differ.
    """
    indexing = kwargs.pop("indexing", "xy")
    kwargs.pop("name", None)
    if kwargs:
        raise ArgumentTypeError(f"'{next(iter(kwargs))}' is an invalid keyword argument for this function")
    if indexing not in ("xy", "ij"):
        raise ArgumentValueError(f"Argument `indexing` parameter must be either 'xy' or 'ij', got '{indexing}'")
    return [adopt(one) for one in torch.meshgrid(*map(tensor, args), indexing=indexing)] if args else []


@checked
def roll(input: Any, shift: Any, axis: Any, name: str | None = None) -> Tensor:
    """Return the elements shifted along axes; elements shifted past the end reappear at the beginning."""
    return adopt(torch.roll(tensor(input), lengths_of(shift), lengths_of(axis)))
