"""Reductions and gathers of values whose components are all in this process: plain torch arithmetic, nothing is sent.

Sums are in replica order; gradients are those of the arithmetic.
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


def copy_value(value: Any) -> Any:
    """Return a copy of an array or slices; any other value is unchanged."""
    return sparse.copy_leaf(value) if is_array(value) or isinstance(value, IndexedSlices) else value


def reduce_parts(op: ReduceOp, parts: Sequence[Any]) -> Any:
    """Return the sum or mean of arrays of one shape and dtype, or of slices; a single array of any dtype is copied.

    Raises:
        InvalidArgumentError: the dtypes or the shapes differ, or the dtype is bool.
    """
    if any(isinstance(part, IndexedSlices) for part in parts):
        return sparse.reduce_slices(op, parts)
    if len(parts) == 1:
        return copy_value(parts[0])
    convert, tensors = like(parts[0]), [as_torch(part) for part in parts]
    _require_fitting(tensors)
    total = collectives.summable(tensors[0]).clone()
    for tensor in tensors[1:]:
        total = total + collectives.summable(tensor).to(total.device)
    total = total.to(tensors[0].dtype)
    result = total if op is ReduceOp.SUM else collectives.mean_of(total, len(parts))
    return result if convert is None else convert(result)


def _require_fitting(tensors: Sequence[Tensor]) -> None:
    dtypes.require_added("reduce", tensors[:1], 0, len(tensors))
    dtypes.require_one_dtype("reduce", "AddN", tensors)
    shapes = [list(tensor.shape) for tensor in tensors]
    if any(shape != shapes[0] for shape in shapes):
        raise shape_mismatch(f"reduce: the replicas have shapes {shapes}, must have the same size and shape")


def gather_parts(parts: Sequence[Any], axis: int) -> Any:
    """Concatenate the parts along ``axis``.

    Raises:
        NotImplementedError: a part is ``IndexedSlices``.
        InvalidArgumentError: a part is a scalar, the axis is out of range, or other axes or dtypes differ.
    """
    refuse_slices(parts, "gather/all_gather")
    convert, tensors, axis = like(parts[0]), [as_torch(part) for part in parts], collectives.axis_of(axis)
    for replica, tensor in enumerate(tensors):
        collectives.require_axis("gather", tensor, axis, replica, len(parts))
    dtypes.require_one_dtype("gather", "ConcatV2", tensors)
    whole = collectives.concatenate("gather", [tensor.to(tensors[0].device) for tensor in tensors], axis)
    return whole if convert is None else convert(whole)


def place(result: Any, destinations: Any) -> Any:
    """Return ``result``, or, for a distributed destination, a ``Mirrored`` with ``result`` for each component."""
    if not isinstance(destinations, DistributedValues) or len(destinations.values) == 1:
        return result
    return Mirrored([result, *(copy_value(result) for _ in destinations.values[1:])])


def require_destinations(destinations: Any) -> None:
    """Refuse values that do not name a device.

    Raises:
        ArgumentValueError: the value does not name a device; the text has the expected value.
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
        AssertionError: the value is a list; the text has it.
    """
    if isinstance(destinations, list | tuple):
        raise also(ArgumentError, AssertionError)(f"destinations is {destinations!r}, should not be a list or tuple")
