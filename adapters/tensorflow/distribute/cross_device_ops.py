"""``tf.distribute.CrossDeviceOps``: reductions of values in this process, by TensorFlow's three names.

In TensorFlow the three differ in the path of data between devices; here they are the same. Source: TensorFlow 2.21,
reference manual.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collshim.errors import ArgumentValueError
from collshim.tensorflow.constants import constant
from collshim.tensorflow.distribute import in_process, leaves
from collshim.tensorflow.distribute.experimental import Options
from collshim.tensorflow.distribute.reduce_op import ReduceOp
from collshim.tensorflow.distribute.values import DistributedValues


class CrossDeviceOps:
    """A way to reduce and broadcast the values of several replicas of one process."""

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
            options: without effect.

        Raises:
            ValueError: there is no such ``reduce_op`` or ``destinations``, or a value is neither an array nor a number.
            tf.errors.InvalidArgumentError: the components' shapes or dtypes differ, or they are bool.
        """
        _require_reduce_op(reduce_op)
        in_process.require_destinations(destinations)
        if not isinstance(per_replica_value, DistributedValues):
            return in_process.copy_value(_tensor_of(per_replica_value))
        parts = [leaves.leaf_of(per_replica_value, place) for place in range(len(per_replica_value.values))]
        return in_process.place(in_process.reduce_parts(reduce_op, parts), destinations)

    def batch_reduce(
        self,
        reduce_op: ReduceOp,
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: Options | None = None,
    ) -> list[Any]:
        """Reduce each pair of a value and its destinations; return a list."""
        return [self.reduce(reduce_op, value, destinations, options) for value, destinations in value_destination_pairs]

    def broadcast(self, tensor: Any, destinations: Any) -> Any:
        """Return a copy of ``tensor`` for each component of ``destinations``, as ``Mirrored``; one array for a device.

        Numbers and lists of them become tensors.

        Raises:
            ValueError: there are no such ``destinations``, or ``tensor`` is neither an array nor a number.
        """
        in_process.require_destinations(destinations)
        return in_process.place(in_process.copy_value(_tensor_of(tensor)), destinations)


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
    """TensorFlow's reduction on one device, and copies from there."""

    def __init__(self, reduce_to_device: str | None = None, accumulation_fn: Any = None) -> None:
        if accumulation_fn is not None:
            raise ArgumentValueError("accumulation_fn is not None, should be None: sums are torch's here")


def _require_reduce_op(reduce_op: object) -> None:
    if not isinstance(reduce_op, ReduceOp):
        raise ArgumentValueError("`reduce_op` must be Reduce.SUM or Reduce.MEAN.")


def _tensor_of(value: Any) -> Any:
    return constant(value) if isinstance(value, list | tuple) else leaves.leaf_of(value, 0)
