"""``tf.distribute.experimental.partitioners``: the number of parts of a large variable. Source: TensorFlow 2.21.

They only compute numbers; the strategies that split variables exist only in TensorFlow.
"""

from __future__ import annotations

import math
from typing import Any

from collshim.adapting.absent import saying
from collshim.errors import ArgumentValueError
from collshim.tensorflow.data_types import DType
from collshim.tensorflow.tensor_shape import TensorShape

__all__ = ["FixedShardsPartitioner", "MaxSizePartitioner", "MinSizePartitioner", "Partitioner"]


class Partitioner:
    """A function of a shape, a dtype and an axis that returns the number of parts along each axis."""

    def __call__(self, shape: TensorShape, dtype: Any, axis: int = 0) -> list[int]:
        """Return the number of parts along each axis.

        Raises:
            NotImplementedError: always; subclasses define this method.
        """
        raise NotImplementedError


class FixedShardsPartitioner(Partitioner):
    """Splits into a fixed number of parts, but at most one for each row."""

    def __init__(self, num_shards: int) -> None:
        self._num_shards = num_shards

    def __call__(self, shape: TensorShape, dtype: Any, axis: int = 0) -> list[int]:
        """Return the number of parts along each axis."""
        return _along(shape, axis, min(self._num_shards, shape[axis]))


class MinSizePartitioner(Partitioner):
    """Splits into as many parts as possible, up to ``max_shards``, of at least ``min_shard_bytes``.

    Raises:
        ValueError: an argument is not positive.
    """

    def __init__(self, min_shard_bytes: int = 256 << 10, max_shards: int = 1, bytes_per_string: int = 16) -> None:
        _require_positive("min_shard_bytes", min_shard_bytes, ": ")
        _require_positive("max_shards", max_shards, ": ")
        _require_positive("bytes_per_string", bytes_per_string, ": ")
        self._min_shard_bytes, self._max_shards = min_shard_bytes, max_shards

    def __call__(self, shape: TensorShape, dtype: Any, axis: int = 0) -> list[int]:
        """Return the number of parts along each axis.

        Raises:
            ValueError: there is no such axis.
        """
        if axis >= len(shape):
            raise ArgumentValueError(f"Cannot partition variable along axis {axis} when shape is only {shape}")
        fitting = math.ceil(math.prod(shape) * DType(dtype).size / self._min_shard_bytes)
        return _along(shape, axis, max(1, min(shape[axis], self._max_shards, fitting)))


class MaxSizePartitioner(Partitioner):
    """Splits into as few parts as possible of at most ``max_shard_bytes``, but into no more than ``max_shards``.

    Raises:
        ValueError: an argument is not positive.
    """

    def __init__(self, max_shard_bytes: int, max_shards: int | None = None, bytes_per_string: int = 16) -> None:
        _require_positive("max_shard_bytes", max_shard_bytes, " ")
        if max_shards:
            _require_positive("max_shards", max_shards, " ")
        _require_positive("bytes_per_string", bytes_per_string, ": ")
        self._max_shard_bytes, self._max_shards = max_shard_bytes, max_shards

    def __call__(self, shape: TensorShape, dtype: Any, axis: int = 0) -> list[int]:
        """Return the number of parts along each axis."""
        row = math.prod(shape) / shape[axis] * DType(dtype).size
        parts = math.ceil(shape[axis] / max(1, math.floor(self._max_shard_bytes / row)))
        return _along(shape, axis, min(self._max_shards, parts) if self._max_shards else parts)


def _require_positive(name: str, value: int, separator: str) -> None:
    if value < 1:
        raise ArgumentValueError(f"Argument `{name}` must be positive. Received{separator}{value}")


def _along(shape: TensorShape, axis: int, count: int) -> list[int]:
    parts = [1] * len(shape)
    parts[axis] = count
    return parts


__getattr__ = saying(__name__, "strategies for parameter servers exist only in TensorFlow")
