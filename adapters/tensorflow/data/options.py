"""``tf.data.Options``: of which the way workers share a dataset means something here. Source: TensorFlow 2.21."""

from __future__ import annotations

from enum import IntEnum


class AutoShardPolicy(IntEnum):
    """Whether each worker reads a part of each batch, or all (OFF)."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class DistributeOptions:
    """How a dataset is distributed.

    Attributes:
        auto_shard_policy: all but OFF mean the same here: there are no files.
        num_devices: accepted; changes nothing.
    """

    def __init__(self) -> None:
        self.auto_shard_policy = AutoShardPolicy.AUTO
        self.num_devices: int | None = None


class Options:
    """Options of a dataset; those that are not named here are accepted and change nothing.

    Attributes:
        experimental_distribute: how it is distributed.
    """

    def __init__(self) -> None:
        self.experimental_distribute = DistributeOptions()
