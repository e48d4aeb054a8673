"""The replicas' collectives on the leaves of a nest; the only module that calls the engine's communicator.

The leaves of one call are one operation: all are validated before the first is sent, and all take part in the backward,
with zeros for outputs that the loss does not use. Source: TensorFlow 2.21, the custom gradients of
``ReplicaContext.all_gather`` and ``all_reduce``, and recorded results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import index
from typing import Any, cast

import torch
from torch import Tensor

from collshim.arrays import as_torch, like
from collshim.arrays.dtypes import SIGNED
from collshim.communicator import Communicator
from collshim.errors import ArgumentTypeError, CollshimError, refusal
from collshim.layout import joined
from collshim.tensorflow.distribute.reduce_op import ReduceOp
from collshim.tensorflow.errors import invalid_argument, raise_as_tensorflow, shape_mismatch
from collshim.together import Together
from collshim.work import Work

_FLOAT32_MEANS = (torch.int8, torch.uint8, torch.int16, torch.uint16)


def copies(arrays: Sequence[Any]) -> list[Any]:
    """Return copies of the values of a single replica; gradients pass."""
    return _as_one([copy_array(array) for array in arrays])


def copy_array(array: Any) -> Any:
    """Return a copy of an array, of the same type; gradients pass."""
    convert = like(array)
    copy = as_torch(array).clone()
    return copy if convert is None else convert(copy)


def all_gather(
    communicator: Communicator, arrays: Sequence[Any], tensors: Sequence[Tensor], axis: int, timeout: float | None
) -> list[Any]:
    """Concatenate all ranks' arrays along ``axis``, for each array; ``tensors`` are the arrays as torch tensors."""
    join = partial(concatenate, "all_gather", axis=axis)
    try:
        kinds = [like(array) for array in arrays]
        works = [communicator.all_gather_ragged(tensor).then(join) for tensor in tensors]
        results = [works[0].wait(timeout)] if len(works) == 1 else Together(works).wait(timeout)
    except CollshimError as error:
        raise_as_tensorflow(error)
    whole = zip(kinds, results, strict=True)
    return _as_one([result if kind is None else kind(result) for kind, result in whole])


def axis_of_all(communicator: Communicator, tensors: Sequence[Tensor], axis: Any) -> int:
    """Return the axis along which ``all_gather`` joins the tensors.

    Raises:
        ArgumentTypeError: the axis is not an int. InvalidArgumentError: an array has no such axis.
    """
    number = axis if type(axis) is int else axis_of(axis)
    for tensor in tensors:
        require_axis("all_gather", tensor, number, communicator.rank, communicator.size)
    return number


def all_reduce(communicator: Communicator, op: ReduceOp, arrays: Sequence[Any], timeout: float | None) -> list[Any]:
    """Return the sum or the mean of each array over all ranks; a mean of integers is a float."""
    for array in arrays:
        as_torch(array)
    try:
        works = [_reduction(communicator, op, array) for array in arrays]
        return _as_one(Together(works).wait(timeout))
    except CollshimError as error:
        raise_as_tensorflow(error)


def of_the_first(communicator: Communicator, tensor: Tensor) -> Tensor:
    """Return the first rank's tensor on all ranks; the others' have its shape and dtype."""
    try:
        return communicator.broadcast(tensor, 0).wait()
    except CollshimError as error:
        raise_as_tensorflow(error)


def summable(tensor: Tensor) -> Tensor:
    """Return unsigned integers of 16 bits and more as int64, which has the same low bits; torch does not add them."""
    return tensor.to(torch.int64) if tensor.dtype in SIGNED else tensor


def mean_of(total: Tensor, count: int) -> Tensor:
    """Divide as TensorFlow does: to a 64-bit float for integers of 32 and 64 bits, and to float32 for smaller ones."""
    if total.is_floating_point() or total.is_complex():
        return total / count
    return total.to(torch.float32 if total.dtype in _FLOAT32_MEANS else torch.float64) / count


def concatenate(collective: str, parts: Sequence[Tensor], axis: int) -> Tensor:
    """Concatenate the parts along ``axis``; along axis 0, return the buffer that already has them.

    Raises:
        InvalidArgumentError: an axis other than ``axis`` differs between the parts; all ranks see the same parts, so
            all raise this.
    """
    first = parts[0].shape
    if any(part.shape != first for part in parts) and len({_beside(part.shape, axis) for part in parts}) > 1:
        shapes = [list(part.shape) for part in parts]
        expected = f"all axes but {axis} must be equal: Dimension {_unequal(shapes, axis)} in both shapes must be equal"
        raise shape_mismatch(f"{collective}: the replicas have shapes {shapes}, {expected}")
    if axis or any(part.requires_grad for part in parts) or (whole := joined(parts)) is None:
        return torch.cat(list(parts), axis)
    return whole.view(sum([part.shape[0] for part in parts]), *parts[0].shape[1:])


def _beside(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], -1, *shape[axis + 1 :])


def _unequal(shapes: Sequence[Sequence[int]], axis: int) -> int:
    """Return the first axis, other than ``axis``, that a shape lacks or in whose length shapes differ."""
    lengths = [_beside(shape, axis) for shape in shapes]
    longest = max(lengths, key=len)
    return next(place for place in range(len(longest)) if len({tuple(one[place : place + 1]) for one in lengths}) > 1)


def axis_of(axis: Any) -> int:
    """Convert an axis to an int.

    Raises:
        ArgumentTypeError: the axis is not an int.
    """
    try:
        return index(axis)
    except TypeError as error:
        raise ArgumentTypeError(f"all_gather: axis is {axis!r}, should be an int or an integer tensor ()") from error


def require_axis(collective: str, tensor: Tensor, axis: int, rank: int, size: int) -> None:
    """Refuse to concatenate scalars, or along an axis that does not exist.

    Raises:
        InvalidArgumentError: (also a ValueError) TensorFlow raises one or the other, by dtype and strategy; the text
            has the words of both.
    """
    text = f"{str(tensor.dtype).removeprefix('torch.')} {list(tensor.shape)}"
    if axis < 0 or tensor.dim() == 0 or axis >= tensor.dim():
        limit = f"{axis + 1}/{tensor.dim()}" if axis >= 0 else f"0/{axis}"
        raise invalid_argument(
            f"{_misplaced(collective, tensor, axis, rank, size, text)} Requires start <= limit when delta > 0: {limit}"
        )


def _misplaced(collective: str, tensor: Tensor, axis: int, rank: int, size: int, text: str) -> str:
    if tensor.dim() == 0:
        sentence = refusal(collective, "value's number of axes", 0, "at least 1", rank, size, text)
        return f"{sentence}. Can't concatenate scalars (use tf.stack instead)."
    sentence = refusal(collective, "axis", axis, f"from 0 to {tensor.dim() - 1}", rank, size, text)
    return f"{sentence}. Expected concatenating dimensions in the range [0, {tensor.dim()}), but got {axis}."


def _reduction(communicator: Communicator, op: ReduceOp, array: Any) -> Work[Any]:
    tensor = as_torch(array)
    if op is ReduceOp.SUM:
        return communicator.all_reduce(array, "sum")
    if tensor.is_floating_point() or tensor.is_complex():
        return communicator.all_reduce(array, "avg")
    return communicator.all_reduce(array, "sum").then(lambda total: mean_of(total, communicator.size))


def _as_one(results: list[Any]) -> list[Any]:
    """Combine results into one operation: in the backward, each result has a gradient, whether or not it was used."""
    if len(results) == 1:
        return results
    places = [index for index, result in enumerate(results) if isinstance(result, Tensor) and result.requires_grad]
    if len(places) > 1:
        apply = cast(Callable[..., tuple[Tensor, ...]], _OneOperation.apply)
        for index, output in zip(places, apply(*[results[index] for index in places]), strict=True):
            results[index] = output
    return results


class _OneOperation(torch.autograd.Function):
    """The identity on several outputs; in its backward, each output has a gradient: zeros if it was not used."""

    @staticmethod
    def forward(ctx: Any, *outputs: Tensor) -> tuple[Tensor, ...]:
        return tuple(output.detach() for output in outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, ...]:
        return gradients
