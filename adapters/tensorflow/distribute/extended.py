"""``tf.distribute.StrategyExtended``: what strategies do differently, with one replica as the plain case.

A strategy with one replica in this thread (the default one, ``OneDeviceStrategy``, ``MirroredStrategy`` on
one device, ``MultiWorkerMirroredStrategy``) calls functions where it stands; ``MirroredStrategy`` overrides
that with threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from collshim.arrays import as_torch, like
from collshim.communicator import Communicator
from collshim.errors import ArgumentError, ArgumentTypeError, also
from collshim.tensorflow.distribute import collectives, context, dtypes, in_process, leaves, nest
from collshim.tensorflow.distribute.experimental import CommunicationOptions, ValueContext, timeout_of
from collshim.tensorflow.distribute.reduce_op import ReduceOp, reduce_op_of
from collshim.tensorflow.distribute.replica_context import ReplicaContext
from collshim.tensorflow.distribute.values import PerReplica, component, regroup, select
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.indexed_slices import IndexedSlices

if TYPE_CHECKING:
    from collshim.tensorflow.distribute.strategy import Strategy


class StrategyExtended:
    """Further methods of a strategy; every strategy has its own, this one has one replica and talks to nobody."""

    _wraps_values = True
    _cluster_resolver: Any = None
    _options: CommunicationOptions | None = None
    _communicator: Communicator | None = None
    _limits_dtypes = True  # as TensorFlow's collective operations do; what it has in their place takes any

    def __init__(self, container_strategy: Strategy) -> None:
        self._strategy = container_strategy
        self._devices: tuple[str, ...] = ("/job:localhost/replica:0/task:0/device:CPU:0",)
        self._num_replicas = 1
        self._local_replicas: Sequence[int] = (0,)

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The names of the devices that this process's replicas run on, in replica order."""
        return self._devices

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The names of the devices that variables would lie on: those of the replicas."""
        return self._devices

    @property
    def experimental_require_static_shapes(self) -> bool:
        """False: a replica's shapes may differ from one call to the next."""
        return False

    def value_container(self, value: Any) -> Any:
        """What ``value`` is a component of: itself, as there are no variables here."""
        return value

    def reduce_to(
        self,
        reduce_op: ReduceOp | str,
        value: Any,
        destinations: Any,
        options: CommunicationOptions | None = None,
    ) -> Any:
        """The sum or mean of ``value`` over all replicas, left at ``destinations``.

        The MEAN of what is the same on all replicas of a ``MirroredStrategy``, ``Mirrored`` or not distributed, is
        itself, wherever it is to be left.

        Args:
            reduce_op: see ``ReplicaContext.all_reduce``.
            value: a ``PerReplica``, an array, or slices.
            destinations: a distributed value, for a result on all its devices (a ``Mirrored`` where this process
                has several replicas), or the name of a device, for one array. Nothing moves between devices here.
            options: see ``ReplicaContext.all_reduce``.

        Raises:
            RuntimeError: called from a replica.
            AssertionError: ``destinations`` is a list.
            ValueError: ``destinations`` is empty or something else.
        """
        context.require_cross_replica(self._strategy)
        op = reduce_op_of(reduce_op)
        if isinstance(destinations, list | tuple):
            raise also(ArgumentError, AssertionError)(f"destinations is {destinations!r}, should be no list or tuple")
        in_process.require_destinations(destinations)
        return self._reduce_to(op, value, destinations, self._timeout(options))

    def batch_reduce_to(
        self,
        reduce_op: ReduceOp | str,
        value_destination_pairs: Sequence[tuple[Any, Any]],
        options: CommunicationOptions | None = None,
    ) -> list[Any]:
        """``reduce_to`` for each pair of a value and its destinations, in a list."""
        context.require_cross_replica(self._strategy)
        return [
            self.reduce_to(reduce_op, value, destinations, options) for value, destinations in value_destination_pairs
        ]

    def _timeout(self, options: CommunicationOptions | None) -> float | None:
        return timeout_of(options, self._options)

    def _local_index(self, replica_id: int) -> int:
        """The place of a replica of this process in the components of a distributed value."""
        return 0

    def _device(self, replica_id: int) -> str:
        return self._devices[self._local_index(replica_id)]

    def _call_for_each_replica(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        replica = ReplicaContext(self._strategy, self._local_replicas[0])
        with context.entered(self._strategy, replica):
            return fn(*select(0, args), **select(0, kwargs))

    def _reduce(self, op: ReduceOp, value: Any, timeout: float | None) -> Any:
        return nest.map_structure(lambda leaf: in_process.owned(component(leaf, 0)), value)

    def _reduce_along(self, op: ReduceOp, value: Any, axis: int | tuple[int, ...], timeout: float | None) -> Any:
        """Sums along ``axis`` first, then over the replicas; a mean divides by what the same does to the counts."""
        parts = self._components(value)
        sums, counts = zip(*[_sum_and_count(part, axis) for part in parts], strict=True)
        total = self._reduce(ReduceOp.SUM, PerReplica(sums), timeout)
        if op is ReduceOp.MEAN:
            count = self._reduce(ReduceOp.SUM, PerReplica(counts), timeout)
            total = collectives.mean_of(total, int(count))
        back = like(parts[0])
        return total if back is None else back(total)

    def _components(self, value: Any) -> list[Any]:
        """One component for each replica of this process, numbers as tensors."""
        return [leaves.leaf_of(value, place) for place in range(len(self._local_replicas))]

    def _gather(self, value: Any, axis: int, timeout: float | None) -> Any:
        return nest.map_structure(lambda leaf: in_process.owned(component(leaf, 0)), value)

    def _reduce_to(self, op: ReduceOp, value: Any, destinations: Any, timeout: float | None) -> Any:
        """What ``reduce_to`` leaves at ``destinations``."""
        return self._reduce(op, value, timeout)

    def _local_results(self, value: Any) -> tuple[Any, ...]:
        return tuple(select(place, value) for place in range(len(self._local_replicas)))

    def _distribute_values(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        made = [value_fn(ValueContext(replica, self._num_replicas)) for replica in self._local_replicas]
        return regroup(made, always_wrap=True) if self._wraps_values else made[0]


def _sum_and_count(value: Any, axis: int | tuple[int, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    if isinstance(value, IndexedSlices):
        raise ArgumentTypeError("reduce: value is IndexedSlices, should be an array where an axis is given")
    tensor = as_torch(value)
    dtypes.require_summed("reduce", tensor)
    axes = _axes_of(tensor, axis)
    count = torch.Size(tensor.shape[one] for one in axes).numel()
    return tensor.sum(axes, dtype=tensor.dtype) if axes else tensor, torch.tensor(count)


def _axes_of(tensor: torch.Tensor, axis: Any) -> tuple[int, ...]:
    """The axes that an int or a tuple of them means, counted from 0; bools are ints, as in TensorFlow."""
    if not isinstance(axis, int | tuple) or not all(isinstance(one, int | np.integer) for one in _several(axis)):
        raise ArgumentTypeError(f"reduce: axis is {axis!r}, should be an int, a tuple of ints or None")
    axes, dim = [int(one) for one in _several(axis)], tensor.dim()
    if not all(-dim <= one < dim for one in axes):
        raise invalid_argument(f"Invalid reduction dimension {axis} for input with {dim} dimensions.")
    found = tuple(one % dim for one in axes)
    if len(set(found)) < len(found):
        raise invalid_argument(f"Invalid reduction arguments: axis {axis} names a dimension twice.")
    return found


def _several(axis: Any) -> tuple[Any, ...]:
    return axis if isinstance(axis, tuple) else (axis,)
