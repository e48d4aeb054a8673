"""``tf.distribute.MirroredStrategy``: replicas are threads of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from collshim.arrays import as_torch
from collshim.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, also
from collshim.tensorflow import structures
from collshim.tensorflow.config.logical import LogicalDevice
from collshim.tensorflow.distribute import dtypes, in_process
from collshim.tensorflow.distribute.cross_device_ops import CrossDeviceOps
from collshim.tensorflow.distribute.devices import canonical, visible
from collshim.tensorflow.distribute.extended import StrategyExtended
from collshim.tensorflow.distribute.leaves import leaf_of
from collshim.tensorflow.distribute.reduce_op import ReduceOp
from collshim.tensorflow.distribute.replica_threads import ReplicaThreads
from collshim.tensorflow.distribute.strategy import Strategy
from collshim.tensorflow.distribute.values import DistributedValues, Mirrored, component, regroup


class MirroredStrategy(Strategy):
    """One replica per device, all in this process: ``run`` starts a thread for each.

    Args:
        devices: names such as ``["GPU:0", "GPU:1"]``, even if there are no such GPUs, or logical devices: they define
            the number of replicas, and a thread's current CUDA device if torch sees that GPU; data does not move. With
            None or an empty list, there is one replica for each logical GPU, or, without GPUs, for each logical CPU.
        cross_device_ops: ``NcclAllReduce()`` and the like. With any of these, ``ReplicaContext.all_gather`` and
            ``all_reduce`` accept every dtype; there is no other difference here.

    Raises:
        AssertionError: a device is named twice.
        ValueError: a device has no such name.
    """

    def __init__(
        self, devices: Sequence[str | LogicalDevice] | None = None, cross_device_ops: CrossDeviceOps | None = None
    ) -> None:
        if not isinstance(cross_device_ops, CrossDeviceOps | None):
            raise ArgumentTypeError(
                f"cross_device_ops is {cross_device_ops!r}, should be one of tf.distribute's own, or None"
            )
        super().__init__(MirroredExtended(self, devices, limits_dtypes=cross_device_ops is None))


class MirroredExtended(StrategyExtended):
    """The methods of a strategy whose replicas are threads."""

    _makes_variables = True
    _has_pipelines_for_replicas = True

    def __init__(
        self, container_strategy: Strategy, devices: Sequence[str | LogicalDevice] | None, limits_dtypes: bool
    ) -> None:
        super().__init__(container_strategy)
        self._limits_dtypes = limits_dtypes
        self._devices = self._devices_of(devices)
        self._num_replicas = len(self._devices)
        self._local_replicas = range(self._num_replicas)

    def _devices_of(self, devices: Sequence[str | LogicalDevice] | None) -> tuple[str, ...]:
        return _distinct(devices)

    def _local_index(self, replica_id: int) -> int:
        return replica_id

    def _call_for_each_replica(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._num_replicas == 1:
            return super()._call_for_each_replica(fn, args, kwargs)
        return regroup(ReplicaThreads(self._strategy, self._devices).run(fn, args, kwargs))

    def _reduce(self, op: ReduceOp, value: Any, timeout: float | None) -> Any:
        if self._num_replicas == 1:
            tensors = structures.map_structure(lambda leaf: leaf_of(leaf, 0), value) if op is ReduceOp.SUM else value
            return super()._reduce(op, tensors, timeout)
        return structures.map_structure(lambda leaf: self._reduce_leaf(op, leaf), value)

    def _reduce_leaf(self, op: ReduceOp, value: Any) -> Any:
        if op is ReduceOp.MEAN and _is_the_same_everywhere(value):
            return in_process.copy_value(component(value, 0))
        if isinstance(value, DistributedValues) and value._is_mirrored():
            raise also(ArgumentError, AssertionError)("reduce: value is Mirrored, should be PerReplica for a SUM")
        if not isinstance(value, DistributedValues):
            raise ArgumentValueError(
                f"A non-DistributedValues value {value} cannot be reduced with the given reduce op {op}."
            )
        return in_process.reduce_parts(op, self._components(value))

    def _gather(self, value: Any, axis: int, timeout: float | None) -> Any:
        if self._num_replicas == 1:
            return super()._gather(value, axis, timeout)
        return structures.map_structure(lambda leaf: self._gather_leaf(leaf, axis), value)

    def _gather_leaf(self, value: Any, axis: int) -> Any:
        if not isinstance(value, DistributedValues):
            return in_process.copy_value(value)
        parts = self._components(value)
        if self._limits_dtypes:
            for replica, part in enumerate(parts):
                dtypes.require_gathered("gather", [as_torch(part)], replica, len(parts))
        return in_process.gather_parts(parts, axis)

    def _reduce_to(self, op: ReduceOp, value: Any, destinations: Any, timeout: float | None) -> Any:
        if op is not ReduceOp.MEAN or self._num_replicas == 1 or not _is_the_same_everywhere(value):
            return in_process.place(self._reduce(op, value, timeout), destinations)
        if isinstance(value, Mirrored):
            return Mirrored(in_process.copy_value(part) for part in value.values)
        return in_process.copy_value(value)


def _is_the_same_everywhere(value: Any) -> bool:
    if isinstance(value, DistributedValues):
        return value._is_mirrored()
    return not structures.is_nested(value)


def _distinct(devices: Sequence[str | LogicalDevice] | None) -> tuple[str, ...]:
    names = named(devices)
    if len(set(names)) < len(names):
        raise also(ArgumentError, AssertionError)(f"No duplicates allowed in `devices` argument: {names}")
    return names


def named(devices: Sequence[str | LogicalDevice] | None) -> tuple[str, ...]:
    """Return the full names of devices, by default of those that a strategy uses."""
    if not isinstance(devices, Sequence | None):
        raise ArgumentTypeError(f"devices is {devices!r}, should be a list of names such as ['GPU:0', 'GPU:1']")
    if isinstance(devices, str) and devices:
        raise ArgumentValueError(
            f"devices is {devices!r}, should be a list of names such as ['GPU:0', 'GPU:1']: Unknown attribute "
            f"{devices[0]!r} is encountered while parsing the device spec: {devices[0]!r}."
        )
    return tuple(canonical(device) for device in (devices or visible()))
