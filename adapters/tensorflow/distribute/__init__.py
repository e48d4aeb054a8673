"""``tf.distribute``: strategies, their replicas, and the replicas' collectives.

Outside all strategies, the default strategy applies. It has one replica, whose collectives return copies.
"""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.tensorflow.distribute import cluster_resolver, experimental
from collshim.tensorflow.distribute.context import (
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from collshim.tensorflow.distribute.cross_device_ops import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    NcclAllReduce,
    ReductionToOneDevice,
)
from collshim.tensorflow.distribute.datasets import DistributedDataset, DistributedIterator
from collshim.tensorflow.distribute.extended import StrategyExtended
from collshim.tensorflow.distribute.input_context import InputContext, InputOptions, InputReplicationMode
from collshim.tensorflow.distribute.mirrored import MirroredStrategy
from collshim.tensorflow.distribute.multi_worker import MultiWorkerMirroredStrategy
from collshim.tensorflow.distribute.one_device import OneDeviceStrategy
from collshim.tensorflow.distribute.reduce_op import ReduceOp
from collshim.tensorflow.distribute.replica_context import ReplicaContext
from collshim.tensorflow.distribute.strategy import RunOptions, Strategy
from collshim.tensorflow.distribute.tpu_strategy import TPUStrategy
from collshim.tensorflow.distribute.values import DistributedValues

__all__ = [
    "CrossDeviceOps",
    "DistributedDataset",
    "DistributedIterator",
    "DistributedValues",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputOptions",
    "InputReplicationMode",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RunOptions",
    "Strategy",
    "StrategyExtended",
    "TPUStrategy",
    "cluster_resolver",
    "experimental",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]


__getattr__ = saying(__name__)
