"""TensorFlow's functions that create, join, split and rearrange tensors, over torch. Gradients are torch's.

Each takes arrays, numbers, variables and lists, and returns tensors. Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.arithmetic import constant_like, tensor
from collshim.tensorflow.arithmetic import tensor as as_tensor
from collshim.tensorflow.constants import constant, torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name
from collshim.tensorflow.tensor_shape import TensorShape

builtin_range = range


def concat(values: Any, axis: Any, name: str | None = "concat") -> Tensor:
    """Concatenate tensors along ``axis``, which may be negative; a single tensor is copied, whatever its axes.

    Raises:
        InvalidArgumentError: the tensors are scalars; there is no such axis; dtypes, or lengths of other axes, differ.
    """
    parts = [tensor(value) for value in (values if isinstance(values, list | tuple) else [values])]
    if len(parts) == 1:
        return adopt(parts[0].clone())
    number, dim = int(axis), parts[0].dim()
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


def _require_one_dtype(parts: Sequence[torch.Tensor]) -> None:
    dtypes = [dtype_name(part.dtype) for part in parts]
    if len(set(dtypes)) > 1:
        raise invalid_argument(f"cannot compute ConcatV2: the tensors have dtypes {dtypes}, should all have one")


def stack(values: Any, axis: int = 0, name: str = "stack") -> Tensor:
    """Stack tensors of the same shape and dtype along a new axis."""
    parts = [tensor(value) for value in values]
    _require_one_dtype(parts)
    return adopt(torch.stack(parts, axis))


def unstack(value: Any, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """Return the slices along ``axis``, without that axis."""
    return [adopt(part) for part in tensor(value).unbind(axis)]


def split(
    value: Any, num_or_size_splits: Any, axis: int = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Split ``value`` along ``axis`` into equal parts, or into parts of these lengths, one of which may be -1.

    Raises:
        InvalidArgumentError: the axis cannot be split into equal parts.
    """
    whole = tensor(value)
    length = whole.shape[axis]
    if isinstance(num_or_size_splits, int):
        if length % num_or_size_splits:
            raise invalid_argument(
                f"Number of ways to split should evenly divide the split dimension, but got split_dim {axis} "
                f"(size = {length}) and num_split {num_or_size_splits}"
            )
        return [adopt(part) for part in whole.chunk(num_or_size_splits, axis)]
    sizes = lengths_of(num_or_size_splits)
    rest = length - sum(size for size in sizes if size >= 0)
    return [adopt(part) for part in whole.split([rest if size < 0 else size for size in sizes], axis)]


def lengths_of(shape: Any) -> list[int]:
    """Return a shape, passed as an int, several ints or a tensor of ints, as a list."""
    if isinstance(shape, int) or getattr(shape, "ndim", None) == 0:
        return [int(shape)]
    return [int(length) for length in shape]


def reshape(tensor: Any, shape: Any, name: str | None = None) -> Tensor:
    """Return the tensor with its elements in ``shape``, in which one length may be -1.

    Raises:
        InvalidArgumentError: the shape has a different number of elements.
    """
    value = as_tensor(tensor)
    try:
        return adopt(value.reshape(lengths_of(shape)))
    except RuntimeError as error:
        raise invalid_argument(
            f"Input to reshape is a tensor with {value.numel()} values, but the requested shape is {lengths_of(shape)}"
        ) from error


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> Tensor:
    """Return the tensor with its axes in the order of ``perm``, by default reversed."""
    value = tensor(a)
    value = value.permute(lengths_of(perm) if perm is not None else list(reversed(builtin_range(value.dim()))))
    return adopt(value.conj().resolve_conj() if conjugate else value)


def expand_dims(input: Any, axis: int, name: str | None = None) -> Tensor:
    """Insert a new axis of length 1."""
    return adopt(tensor(input).unsqueeze(axis))


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Remove all axes of length 1, or only ``axis``."""
    value = tensor(input)
    return adopt(value.squeeze() if axis is None else value.squeeze(tuple(lengths_of(axis))))


def tile(input: Any, multiples: Any, name: str | None = None) -> Tensor:
    """Repeat a tensor along each axis."""
    return adopt(tensor(input).repeat(lengths_of(multiples)))


def broadcast_to(input: Any, shape: Any, name: str | None = None) -> Tensor:
    """Broadcast a tensor to ``shape``, along axes of length 1 and new leading axes."""
    return adopt(tensor(input).broadcast_to(lengths_of(shape)).clone())


def gather(params: Any, indices: Any, axis: int = 0, name: str | None = None) -> Tensor:
    """Return the slices of ``params`` along ``axis`` at ``indices``, in the shape of ``indices``."""
    value, places = tensor(params), tensor(indices)
    place = axis % value.dim()
    require_places(places.reshape(-1, 1).long(), value.shape[place : place + 1])
    found = value.index_select(axis, places.reshape(-1).long())
    return adopt(found.reshape(*value.shape[:place], *places.shape, *value.shape[place + 1 :]))


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> Tensor:
    """Add ``updates`` to zeros of ``shape``, at ``indices`` of shape ``(..., axes indexed)``."""
    places, values = tensor(indices).long(), tensor(updates)
    whole = torch.zeros(lengths_of(shape), dtype=values.dtype)
    _require_updates(places, values, whole.shape)
    return adopt(whole.index_put(tuple(places.unbind(-1)), values, accumulate=True))


def gather_nd(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """Return the elements at ``indices``, whose last axis holds positions: ``result[i] = params[indices[i]]``."""
    value, places = as_tensor(params), as_tensor(indices).long()
    require_places(places, value.shape)
    return adopt(value[tuple(places.unbind(-1))])


def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> Tensor:
    """Return ``tensor`` with ``updates[i]`` at ``indices[i]``."""
    whole, places = as_tensor(tensor), as_tensor(indices).long()
    values = as_tensor(updates, None if hasattr(updates, "dtype") else whole.dtype)
    _require_updates(places, values, whole.shape)
    return adopt(whole.index_put(tuple(places.unbind(-1)), values))


def require_places(places: torch.Tensor, shape: Sequence[int]) -> None:
    """Refuse positions outside ``shape``, including negative ones, which torch would count from the end."""
    depth = places.shape[-1]
    if depth > len(shape):
        raise invalid_argument(f"indices have {depth} places each, should have at most {len(shape)}: one for each axis")
    outside = ((places < 0) | (places >= torch.tensor(list(shape[:depth]), dtype=places.dtype))).any(-1)
    if outside.any():
        where = outside.nonzero()[0].tolist()
        raise invalid_argument(
            f"indices{where} = {places[tuple(where)].tolist()} does not index into shape {list(shape)}"
        )


def _require_updates(places: torch.Tensor, values: torch.Tensor, shape: Sequence[int]) -> None:
    require_places(places, shape)
    wanted = [*places.shape[:-1], *shape[places.shape[-1] :]]
    if list(values.shape) != wanted:
        raise invalid_argument(f"updates have shape {list(values.shape)}, should have {wanted}")


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return a tensor with a new axis of length ``depth``: 1 at each index, 0 elsewhere; float32 by default."""
    places = tensor(indices).long()
    hot = places.unsqueeze(-1) == torch.arange(int(depth))
    kind = torch.float32 if dtype is None else torch_dtype(dtype)
    on, off = (torch.tensor(value, dtype=kind) for value in (_or(on_value, 1), _or(off_value, 0)))
    return adopt(torch.where(hot, on, off).movedim(-1, -1 if axis is None else axis))


def _or(value: Any, default: Any) -> Any:
    return default if value is None else value


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """Return the numbers from ``start`` up to, but not including, ``limit``; a single argument is the limit."""
    first, last = (0, start) if limit is None else (start, limit)
    numbers = [tensor(number) for number in (first, last, delta)]
    floats = [number.dtype for number in numbers if number.is_floating_point()]
    wide = torch.int64 if any(number.dtype is torch.int64 for number in numbers) else torch.int32
    kind = torch_dtype(dtype) if dtype is not None else floats[0] if floats else wide
    return adopt(torch.arange(*[number.item() for number in numbers], dtype=kind))


def zeros(shape: Any, dtype: Any = torch.float32, name: str | None = None, layout: Any = None) -> Tensor:
    """Return zeros of ``shape``; float32 by default."""
    return _fill(shape, 0, dtype)


def ones(shape: Any, dtype: Any = torch.float32, name: str | None = None, layout: Any = None) -> Tensor:
    """Return ones of ``shape``; float32 by default."""
    return _fill(shape, 1, dtype)


def fill(dims: Any, value: Any, name: str | None = None) -> Tensor:
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


def zeros_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Tensor:
    """Return zeros with the shape and dtype of ``input``."""
    return constant_like(input, 0, dtype)


def ones_like(input: Any, dtype: Any = None, name: str | None = None, layout: Any = None) -> Tensor:
    """Return ones with the shape and dtype of ``input``."""
    return constant_like(input, 1, dtype)


def eye(num_rows: int, num_columns: int | None = None, dtype: Any = torch.float32) -> Tensor:
    """Return a matrix with ones on its diagonal."""
    return adopt(torch.eye(num_rows, num_columns or num_rows, dtype=torch_dtype(dtype)))


def linspace(start: Any, stop: Any, num: int, name: str | None = None) -> Tensor:
    """Return ``num`` equally spaced numbers from ``start`` to ``stop``, inclusive."""
    return adopt(torch.linspace(float(start), float(stop), int(num)))


def shape(input: Any, out_type: Any = torch.int32, name: str | None = None) -> Tensor:
    """Return the lengths of the axes as a tensor."""
    return constant(list(tensor(input).shape), out_type)


def size(input: Any, out_type: Any = torch.int32, name: str | None = None) -> Tensor:
    """Return the number of elements as a tensor."""
    return constant(tensor(input).numel(), out_type)


def rank(input: Any, name: str | None = None) -> Tensor:
    """Return the number of axes as a tensor."""
    return constant(tensor(input).dim())


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


@checked
def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Return a tensor with each row along ``axis`` repeated ``repeats`` times.

    Raises:
        InvalidArgumentError: ``repeats`` is neither one number nor one number for each row.
    """
    counts = tensor(repeats).long()
    return adopt(torch.repeat_interleave(tensor(input), counts if counts.dim() else int(counts), axis))


@checked
def reverse(tensor: Any, axis: Any, name: str | None = None) -> Tensor:
    """Return a tensor with the elements in reverse order along these axes."""
    return adopt(as_tensor(tensor).flip(lengths_of(axis)))


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
