"""``tf.data.Options``, of which only the sharding between workers has an effect. Source: TensorFlow 2.21."""

from __future__ import annotations

from enum import IntEnum
from types import SimpleNamespace


class AutoShardPolicy(IntEnum):
    """The policy by which each worker reads a part of each batch, or the whole batch (OFF)."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class DistributeOptions:
    """The options for the distribution of a dataset.

    Attributes:
        auto_shard_policy: all values except OFF mean the same here: there are no files.
        num_devices: without effect.
    """

    def __init__(self) -> None:
        self.auto_shard_policy = AutoShardPolicy.AUTO
        self.num_devices: int | None = None


class Options:
    """The options of a dataset; further options are accepted and have no effect.

    Attributes:
        experimental_distribute: the options for its distribution.
        autotune, experimental_optimization, threading: without effect: elements are computed on demand, in the
            caller's thread.
        deterministic: None; without effect: the order is always the same.
    """

    def __init__(self) -> None:
        self.experimental_distribute = DistributeOptions()
        self.autotune, self.experimental_optimization = SimpleNamespace(), SimpleNamespace()
        self.threading = self.experimental_threading = SimpleNamespace()
        self.deterministic: bool | None = None
