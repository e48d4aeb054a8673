"""``tf.distribute.CrossDeviceOps``: reductions of values in this process, by TensorFlow's three names.

In TensorFlow, the three move data between devices in different ways; here they are the same. Source: TensorFlow 2.21,
reference manual, and run on two CPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from collshim.arrays import like
from collshim.errors import ArgumentValueError
from collshim.tensorflow.constants import constant
from collshim.tensorflow.distribute import collectives, in_process, leaves
from collshim.tensorflow.distribute.experimental import Options
from collshim.tensorflow.distribute.reduce_op import ReduceOp
from collshim.tensorflow.distribute.values import DistributedValues
from collshim.tensorflow.indexed_slices import IndexedSlices

_Pairs = Sequence[tuple[Any, Any]]


class CrossDeviceOps:
    """A way to reduce and broadcast the values of several replicas of one process.

    The public methods check their arguments and call the ``_implementation`` of the same name, which a subclass may
    define. Strategies do not use these methods for their own reductions.
    """

    def reduce(
        self,
        reduce_op: ReduceOp,
        per_replica_value: Any,
        destinations: Any,
        options: Options | None = None,
    ) -> Any:
        """Return the sum or mean of a ``PerReplica``'s components, at ``destinations``.

        Args:
            reduce_op: ``tf.distribute.ReduceOp.SUM`` or ``MEAN``.
            per_replica_value: a ``PerReplica``, with numbers as tensors; any other value is one component, and the
                result is one array for any destination.
            destinations: a distributed value, for a ``Mirrored`` of as many components, or the name of a device.
            options: has no effect.

        Raises:
            ValueError: there is no such ``reduce_op`` or ``destinations``, or a value is neither an array nor a number.
            tf.errors.InvalidArgumentError: the components' shapes or dtypes differ, or they are bool.
        """
        _require_reduce_op(reduce_op)
        in_process.require_destinations(destinations)
        if not isinstance(per_replica_value, DistributedValues):
            return in_process.copy_value(_tensor_of(per_replica_value))
        return self.reduce_implementation(reduce_op, per_replica_value, destinations, options)

    def reduce_implementation(
        self, reduce_op: ReduceOp, per_replica_value: Any, destinations: Any, options: Options | None
    ) -> Any:
        """Return the sum or mean of a ``PerReplica``'s components, at ``destinations``."""
        parts = [leaves.leaf_of(per_replica_value, place) for place in range(len(per_replica_value.values))]
        return in_process.place(self._reduced(reduce_op, parts), destinations)

    def _reduced(self, reduce_op: ReduceOp, parts: Sequence[Any]) -> Any:
        return in_process.reduce_parts(reduce_op, parts)

    def batch_reduce(
        self,
        reduce_op: ReduceOp,
        value_destination_pairs: _Pairs,
        options: Options | None = None,
    ) -> list[Any]:
        """Reduce each pair of a value and its destinations; return a list.

        Raises:
            ValueError: an element is not a tuple, or its destinations are invalid.
        """
        if not all(isinstance(pair, tuple) for pair in value_destination_pairs):
            raise ArgumentValueError("Each element of `value_destination_pairs` should be a tuple.")
        for _, destinations in value_destination_pairs:
            in_process.require_destinations(destinations)
        return self.batch_reduce_implementation(reduce_op, value_destination_pairs, options)

    def batch_reduce_implementation(
        self, reduce_op: ReduceOp, value_destination_pairs: _Pairs, options: Options | None
    ) -> list[Any]:
        """Reduce each pair of a value and its destinations; return a list."""
        return [self.reduce(reduce_op, value, destinations, options) for value, destinations in value_destination_pairs]

    def broadcast(self, tensor: Any, destinations: Any) -> Any:
        """Return a copy of ``tensor`` for each component of ``destinations``, as ``Mirrored``; one array for a device.

        Numbers and lists of them become tensors.

        Raises:
            ValueError: ``destinations`` is invalid, or ``tensor`` is neither an array nor a number.
        """
        in_process.require_destinations(destinations)
        return self.broadcast_implementation(tensor, destinations)

    def broadcast_implementation(self, tensor: Any, destinations: Any) -> Any:
        """Return a copy of ``tensor`` for each component of ``destinations``."""
        return in_process.place(in_process.copy_value(_tensor_of(tensor)), destinations)

    def _gather(self, per_replica_value: Any, destinations: Any, axis: int, options: Options | None = None) -> Any:
        in_process.require_destinations(destinations)
        return self._gather_implementation(per_replica_value, destinations, axis, options)

    def _gather_implementation(
        self, per_replica_value: Any, destinations: Any, axis: int, options: Options | None
    ) -> Any:
        if not isinstance(per_replica_value, DistributedValues):
            return in_process.copy_value(_tensor_of(per_replica_value))
        parts = [leaves.leaf_of(per_replica_value, place) for place in range(len(per_replica_value.values))]
        return in_process.place(in_process.gather_parts(parts, axis), destinations)


class NcclAllReduce(CrossDeviceOps):
    """TensorFlow's reduction over NCCL."""

    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            raise ArgumentValueError(f"NCCL all-reduce requires num_packs >= 0, but {num_packs} is specified")


class HierarchicalCopyAllReduce(CrossDeviceOps):
    """TensorFlow's reduction over a hierarchy of copies."""

    def __init__(self, num_packs: int = 1) -> None:
        if num_packs < 0:
            raise ArgumentValueError(f"HierarchicalCopy requires num_packs >= 0, but {num_packs} is specified")


class ReductionToOneDevice(CrossDeviceOps):
    """TensorFlow's reduction on one device, and copies from there.

    Args:
        reduce_to_device: has no effect, because data does not move.
        accumulation_fn: a function that adds the tensors of a list; None for ``tf.add_n``. Only this object's own
            methods use it; strategies do not.
    """

    def __init__(
        self, reduce_to_device: str | None = None, accumulation_fn: Callable[[list[Any]], Any] | None = None
    ) -> None:
        self._accumulate = accumulation_fn

    def _reduced(self, reduce_op: ReduceOp, parts: Sequence[Any]) -> Any:
        if self._accumulate is None or any(isinstance(part, IndexedSlices) for part in parts):
            return super()._reduced(reduce_op, parts)
        total = self._accumulate(list(parts))
        convert = like(parts[0])
        if reduce_op is ReduceOp.SUM or convert is None:
            return total
        return convert(collectives.mean_of(total, len(parts)))


def _require_reduce_op(reduce_op: object) -> None:
    if not isinstance(reduce_op, ReduceOp):
        raise ArgumentValueError("`reduce_op` must be Reduce.SUM or Reduce.MEAN.")


def _tensor_of(value: Any) -> Any:
    return constant(value) if isinstance(value, list | tuple) else leaves.leaf_of(value, 0)
