"""Reducing and gathering values whose components all lie in this process: plain torch arithmetic, nothing is sent.

Sums go in replica order; gradients are those of the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from collshim.arrays import as_torch, is_array, like
from collshim.errors import ArgumentError, ArgumentValueError, also
from collshim.tensorflow.distribute import collectives, dtypes, sparse
from collshim.tensorflow.distribute.leaves import refuse_slices
from collshim.tensorflow.distribute.reduce_op import ReduceOp
from collshim.tensorflow.distribute.values import DistributedValues, Mirrored
from collshim.tensorflow.errors import shape_mismatch
from collshim.tensorflow.indexed_slices import IndexedSlices


def owned(value: Any) -> Any:
    """An array or slices in memory of their own; anything else as it is."""
    return sparse.copied_leaf(value) if is_array(value) or isinstance(value, IndexedSlices) else value


def reduced(op: ReduceOp, parts: Sequence[Any]) -> Any:
    """The sum or mean of arrays of one shape and dtype, or of slices; a lone array itself, of any dtype.

    Raises:
        InvalidArgumentError: the dtypes or the shapes differ, or they are bool.
    """
    if any(isinstance(part, IndexedSlices) for part in parts):
        return sparse.reduced(op, parts)
    if len(parts) == 1:
        return owned(parts[0])
    convert, tensors = like(parts[0]), [as_torch(part) for part in parts]
    _require_fitting(tensors)
    total = tensors[0].clone()
    for tensor in tensors[1:]:
        total = total + tensor.to(total.device)
    result = total if op is ReduceOp.SUM else collectives.mean_of(total, len(parts))
    return result if convert is None else convert(result)


def _require_fitting(tensors: Sequence[Tensor]) -> None:
    dtypes.require_added("reduce", tensors[:1], 0, len(tensors))
    dtypes.require_one_dtype("reduce", "AddN", tensors)
    shapes = [list(tensor.shape) for tensor in tensors]
    if any(shape != shapes[0] for shape in shapes):
        raise shape_mismatch(f"reduce: the replicas have shapes {shapes}, must have the same size and shape")


def gathered(parts: Sequence[Any], axis: int) -> Any:
    """The parts behind each other along ``axis``.

    Raises:
        NotImplementedError: a part is ``IndexedSlices``.
        InvalidArgumentError: a scalar, an axis out of range, other axes that differ, or dtypes that do.
    """
    refuse_slices(parts, "gather/all_gather")
    convert, tensors, axis = like(parts[0]), [as_torch(part) for part in parts], collectives.axis_of(axis)
    for replica, tensor in enumerate(tensors):
        collectives.require_axis("gather", tensor, axis, replica, len(parts))
    dtypes.require_one_dtype("gather", "ConcatV2", tensors)
    whole = collectives.concatenated("gather", [tensor.to(tensors[0].device) for tensor in tensors], axis)
    return whole if convert is None else convert(whole)


def placed(result: Any, destinations: Any) -> Any:
    """``result`` for each component of a distributed destination, as ``Mirrored``; itself for one device."""
    if not isinstance(destinations, DistributedValues) or len(destinations.values) == 1:
        return result
    return Mirrored([result, *(owned(result) for _ in destinations.values[1:])])


def require_destinations(destinations: Any) -> None:
    """Refuse what names no device.

    Raises:
        ArgumentValueError: with what it should be.
    """
    if isinstance(destinations, str) and not destinations:
        raise ArgumentValueError("destinations can not be empty")
    known = isinstance(destinations, str | DistributedValues | IndexedSlices) or hasattr(destinations, "_as_tensor")
    if not known and not is_array(destinations):
        raise ArgumentValueError(
            "destinations must be one of a `DistributedValues` object, a tf.Variable object, or a device string."
        )


def require_no_list(destinations: Any) -> None:
    """Refuse several destinations in a list.

    Raises:
        AssertionError: with what came.
    """
    if isinstance(destinations, list | tuple):
        raise also(ArgumentError, AssertionError)(f"destinations is {destinations!r}, should be no list or tuple")
