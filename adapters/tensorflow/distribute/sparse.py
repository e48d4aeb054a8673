"""``IndexedSlices`` among replicas: their sum is all replicas' rows behind each other, duplicates kept.

Source: TensorFlow 2.21, recorded answers of ``all_reduce``: lengths may differ, the dense shape is the
first's, a mean divides each replica's rows by the number of replicas.
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
    """``collectives.all_reduce`` for leaves among which slices may be; where there are any, no gradient passes."""
    if not any(isinstance(leaf, IndexedSlices) for leaf in leaves):
        return collectives.all_reduce(communicator, op, leaves, timeout)
    with torch.no_grad():
        return [_all_reduced(communicator, op, leaf, timeout) for leaf in leaves]


def reduced(op: ReduceOp, parts: Sequence[IndexedSlices]) -> IndexedSlices:
    """The sum or mean of slices that all lie in this process.

    Raises:
        ArgumentValueError: a part is an array.
        InvalidArgumentError: the rows' dtypes differ.
    """
    if not all(isinstance(part, IndexedSlices) for part in parts):
        kinds = [type(part).__name__ for part in parts]
        raise ArgumentValueError(f"reduce: the replicas have {kinds}, should all have IndexedSlices or none")
    dtypes.require_one_dtype("reduce", "ConcatV2", [as_torch(part.values) for part in parts])
    rows = _concatenated([_divided(part.values, op, len(parts)) for part in parts])
    return IndexedSlices(rows, _concatenated([part.indices for part in parts]), parts[0].dense_shape)


def copies(leaves: Sequence[Any]) -> list[Any]:
    """``collectives.copies`` for leaves among which slices may be; gradients pass."""
    if not any(isinstance(leaf, IndexedSlices) for leaf in leaves):
        return collectives.copies(leaves)
    return [copied_leaf(leaf) for leaf in leaves]


def copied_leaf(value: Any) -> Any:
    """The same array or slices in memory of their own; gradients pass."""
    if not isinstance(value, IndexedSlices):
        return collectives.copied(value)
    return IndexedSlices(collectives.copied(value.values), collectives.copied(value.indices), value.dense_shape)


def _all_reduced(communicator: Communicator, op: ReduceOp, value: Any, timeout: float | None) -> Any:
    if not isinstance(value, IndexedSlices):
        return collectives.all_reduce(communicator, op, [value], timeout)[0]
    values = _divided(value.values, op, communicator.size)
    arrays = [values, value.indices]
    tensors = [as_torch(array) for array in arrays]
    axis = collectives.axis_of_all(communicator, tensors, 0)
    rows, indices = collectives.all_gather(communicator, arrays, tensors, axis, timeout)
    return IndexedSlices(rows, indices, value.dense_shape)


def _divided(array: Any, op: ReduceOp, count: int) -> Any:
    if op is ReduceOp.SUM:
        return array
    dtypes.require_summed("reduce", as_torch(array))
    convert = like(array)
    mean = collectives.mean_of(as_torch(array), count)
    return mean if convert is None else convert(mean)


def _concatenated(arrays: Sequence[Any]) -> Any:
    convert = like(arrays[0])
    whole = torch.cat([as_torch(array) for array in arrays])
    return whole if convert is None else convert(whole)
