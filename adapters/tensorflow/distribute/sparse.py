"""``IndexedSlices`` of replicas: their sum is all replicas' rows concatenated, with duplicates.

Source: TensorFlow 2.21, recorded results of ``all_reduce``: lengths may differ, the dense shape is the first's, a mean
divides each replica's rows by the number of replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from collshim.arrays import as_torch, like
from collshim.communicator import Communicator
from collshim.errors import ArgumentValueError
from collshim.tensorflow.distribute import collectives, dtypes
from collshim.tensorflow.distribute.reduce_op import ReduceOp
from collshim.tensorflow.indexed_slices import IndexedSlices


def all_reduce(communicator: Communicator, op: ReduceOp, leaves: Sequence[Any], timeout: float | None) -> list[Any]:
    """Run ``collectives.all_reduce`` on leaves that may include slices; if they do, no gradient passes."""
    if not any(isinstance(leaf, IndexedSlices) for leaf in leaves):
        return collectives.all_reduce(communicator, op, leaves, timeout)
    with torch.no_grad():
        return [_all_reduce(communicator, op, leaf, timeout) for leaf in leaves]


def reduce_slices(op: ReduceOp, parts: Sequence[IndexedSlices]) -> IndexedSlices:
    """Return the sum or mean of slices that are all in this process.

    Raises:
        ArgumentValueError: a part is an array.
        InvalidArgumentError: the rows' dtypes differ.
    """
    if not all(isinstance(part, IndexedSlices) for part in parts):
        kinds = [type(part).__name__ for part in parts]
        raise ArgumentValueError(f"reduce: the replicas have {kinds}, should all have IndexedSlices or none")
    dtypes.require_one_dtype("reduce", "ConcatV2", [as_torch(part.values) for part in parts])
    rows = _concatenate([_divide(part.values, op, len(parts)) for part in parts])
    return IndexedSlices(rows, _concatenate([part.indices for part in parts]), parts[0].dense_shape)


def copies(leaves: Sequence[Any]) -> list[Any]:
    """Run ``collectives.copies`` on leaves that may include slices; gradients pass."""
    if not any(isinstance(leaf, IndexedSlices) for leaf in leaves):
        return collectives.copies(leaves)
    return [copy_leaf(leaf) for leaf in leaves]


def copy_leaf(value: Any) -> Any:
    """Return a copy of an array or slices; gradients pass."""
    if not isinstance(value, IndexedSlices):
        return collectives.copy_array(value)
    return IndexedSlices(collectives.copy_array(value.values), collectives.copy_array(value.indices), value.dense_shape)


def _all_reduce(communicator: Communicator, op: ReduceOp, value: Any, timeout: float | None) -> Any:
    if not isinstance(value, IndexedSlices):
        return collectives.all_reduce(communicator, op, [value], timeout)[0]
    values = _divide(value.values, op, communicator.size)
    arrays = [values, value.indices]
    tensors = [as_torch(array) for array in arrays]
    axis = collectives.axis_of_all(communicator, tensors, 0)
    rows, indices = collectives.all_gather(communicator, arrays, tensors, axis, timeout)
    return IndexedSlices(rows, indices, value.dense_shape)


def _divide(array: Any, op: ReduceOp, count: int) -> Any:
    if op is ReduceOp.SUM:
        return array
    dtypes.require_summed("reduce", as_torch(array))
    convert = like(array)
    mean = collectives.mean_of(as_torch(array), count)
    return mean if convert is None else convert(mean)


def _concatenate(arrays: Sequence[Any]) -> Any:
    convert = like(arrays[0])
    whole = torch.cat([as_torch(array) for array in arrays])
    return whole if convert is None else convert(whole)
