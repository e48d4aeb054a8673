"""``tf.distribute.TPUStrategy`` over the devices of this process: there are no TPUs here, as a warning says once."""

from __future__ import annotations

from typing import Any

from collshim.adapting import devices
from collshim.errors import ArgumentValueError
from collshim.log import warn_once
from collshim.tensorflow.distribute.mirrored import MirroredStrategy


class TPUStrategy(MirroredStrategy):
    """A ``MirroredStrategy`` over this process's GPUs, real or pretended (``COLLSHIM_DEVICES``), else over its CPU.

    Args:
        tpu_cluster_resolver: has no effect.
        experimental_device_assignment: must be None.
        experimental_spmd_xla_partitioning: must be False.

    Raises:
        ValueError: an assignment or partitioning is requested.
    """

    def __init__(
        self,
        tpu_cluster_resolver: Any = None,
        experimental_device_assignment: Any = None,
        experimental_spmd_xla_partitioning: bool = False,
    ) -> None:
        if experimental_device_assignment is not None or experimental_spmd_xla_partitioning:
            raise ArgumentValueError(
                "TPUStrategy: a device assignment and partitioning are not covered: leave both out, and name devices "
                "in a MirroredStrategy"
            )
        names = [f"GPU:{number}" for number in range(devices.count())] or ["CPU:0"]
        warn_once("there are no TPUs here: TPUStrategy is a MirroredStrategy over %s", names)
        super().__init__(names)
        self._extended._cluster_resolver = tpu_cluster_resolver
