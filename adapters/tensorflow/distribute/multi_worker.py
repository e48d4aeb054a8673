"""``tf.distribute.MultiWorkerMirroredStrategy``: every rank is a replica."""

from __future__ import annotations

from typing import Any

import torch

from collshim.adapting.devices import tell_of_cpu
from collshim.arrays import as_torch
from collshim.communicator import Communicator
from collshim.errors import ArgumentError, ArgumentValueError, also
from collshim.tensorflow import structures
from collshim.tensorflow.distribute import collectives, dtypes, sparse
from collshim.tensorflow.distribute.cluster import world_of
from collshim.tensorflow.distribute.cluster_resolver import TFConfigClusterResolver
from collshim.tensorflow.distribute.experimental import Options
from collshim.tensorflow.distribute.extended import StrategyExtended
from collshim.tensorflow.distribute.leaves import leaf_of, leaves_of, refuse_slices
from collshim.tensorflow.distribute.reduce_op import ReduceOp
from collshim.tensorflow.distribute.strategy import Strategy
from collshim.tensorflow.distribute.values import DistributedValues
from collshim.world import World


class MultiWorkerMirroredStrategy(Strategy):
    """One replica per rank of the world that the caller is in: ``run`` calls its function in the caller's thread.

    The world is the launcher's (``torchrun``, ``collshim.launch``), or else the one that ``cluster_resolver`` or the
    environment's ``TF_CONFIG`` describes; without any of these, there is one replica. Ranks may also be threads. A
    value that is not distributed belongs to this rank: ``reduce`` and ``gather`` combine the ranks' values.

    Args:
        cluster_resolver: an object with ``cluster_spec().as_dict()``, ``task_type`` and ``task_id``.
        communication_options: the options of calls that pass none.
    """

    def __init__(self, cluster_resolver: Any = None, communication_options: Options | None = None) -> None:
        super().__init__(_MultiWorkerExtended(self, cluster_resolver, communication_options))


class _MultiWorkerExtended(StrategyExtended):
    _makes_variables = True

    def __init__(self, container_strategy: Strategy, cluster_resolver: Any, options: Options | None) -> None:
        super().__init__(container_strategy)
        self._cluster_resolver = TFConfigClusterResolver() if cluster_resolver is None else cluster_resolver
        if not isinstance(options, Options | None):
            raise ArgumentValueError(
                "communication_options must be an instance of tf.distribute.experimental.CommunicationOptions"
            )
        self._options = options
        world = world_of(cluster_resolver)
        self._num_replicas = world.size
        self._local_replicas = (world.rank,)
        self._devices = (_device(world),)
        self._communicator: Communicator | None = world.communicator if world.size > 1 else None

    @property
    def experimental_between_graph(self) -> bool:
        """True: replicas may be in other processes."""
        return True

    def _reduce(self, op: ReduceOp, value: Any, timeout: float | None) -> Any:
        if self._communicator is None:
            return super()._reduce(op, structures.map_structure(lambda leaf: leaf_of(leaf, 0), value), timeout)
        given = structures.flatten(value)
        if any(isinstance(leaf, DistributedValues) and leaf._is_mirrored() for leaf in given):
            if op is ReduceOp.SUM:
                raise also(ArgumentError, AssertionError)("reduce: value is Mirrored, should be PerReplica for a SUM")
            return super()._reduce(op, value, timeout)
        leaves = leaves_of(value, 0)
        dtypes.require_reduced("reduce", leaves, self._communicator.rank, self._communicator.size)
        return structures.pack_sequence_as(value, sparse.all_reduce(self._communicator, op, leaves, timeout))

    def _gather(self, value: Any, axis: int, timeout: float | None) -> Any:
        if self._communicator is None:
            return super()._gather(value, axis, timeout)
        leaves = leaves_of(value, 0)
        refuse_slices(leaves, "gather/all_gather")
        communicator, tensors = self._communicator, [as_torch(leaf) for leaf in leaves]
        dtypes.require_gathered("gather", tensors, communicator.rank, communicator.size)
        axis = collectives.axis_of_all(communicator, tensors, axis)
        return structures.pack_sequence_as(value, collectives.all_gather(communicator, leaves, tensors, axis, timeout))


def _device(world: World) -> str:
    tell_of_cpu("tensorflow")
    job = "worker" if world.size > 1 else "localhost"
    kind = f"GPU:{world.local_rank}" if world.local_rank < torch.cuda.device_count() else "CPU:0"
    return f"/job:{job}/replica:0/task:{world.rank}/device:{kind}"
