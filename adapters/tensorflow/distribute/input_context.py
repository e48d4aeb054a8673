"""``tf.distribute.InputContext`` and ``InputOptions``: the input of a process. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from collshim.errors import ArgumentError, ArgumentValueError, also


class InputReplicationMode(Enum):
    """Whether an input pipeline is for all replicas of a worker, or for one."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


class _InputOptions(NamedTuple):
    experimental_fetch_to_device: bool
    experimental_replication_mode: InputReplicationMode
    experimental_place_dataset_on_device: bool
    experimental_per_replica_buffer_size: int


class InputOptions(_InputOptions):
    """Options of a strategy's datasets. The options for prefetching have no effect, because nothing is read ahead."""

    def __new__(
        cls,
        experimental_fetch_to_device: bool | None = None,
        experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER,
        experimental_place_dataset_on_device: bool = False,
        experimental_per_replica_buffer_size: int = 1,
    ) -> InputOptions:
        """Return these options; by default, elements are fetched to the devices."""
        fetches = True if experimental_fetch_to_device is None else experimental_fetch_to_device
        return super().__new__(
            cls,
            fetches,
            experimental_replication_mode,
            experimental_place_dataset_on_device,
            experimental_per_replica_buffer_size,
        )


def is_per_replica(options: InputOptions | None) -> bool:
    """Return whether the options ask for an input pipeline for each replica."""
    return options is not None and options.experimental_replication_mode is InputReplicationMode.PER_REPLICA


def require_per_worker(options: InputOptions | None, where: str) -> None:
    """Refuse a pipeline for each replica; ``where`` says which datasets may have one.

    Raises:
        NotImplementedError: the options ask for it.
    """
    if is_per_replica(options):
        raise also(ArgumentError, NotImplementedError)(f"InputReplicationMode.PER_REPLICA is only supported in {where}")


def require_placeable(options: InputOptions | None) -> None:
    """Refuse to make datasets on a device if each is not for one replica, or is fetched to a device.

    Raises:
        ValueError: the options ask for this.
    """
    if options is None or not options.experimental_place_dataset_on_device:
        return
    if not is_per_replica(options):
        raise ArgumentValueError(
            "When `experimental_place_dataset_on_device` is set for dataset placement, you must also specify "
            "`PER_REPLICA` for the replication mode"
        )
    if options.experimental_fetch_to_device:
        raise ArgumentValueError(
            "`experimental_place_dataset_on_device` can not be set to True when experimental_fetch_to_device is True "
            "and replication mode is set to `PER_REPLICA`"
        )


class InputContext:
    """The number of this input pipeline among several, and of the replicas that share a batch."""

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self._num_input_pipelines = num_input_pipelines
        self._input_pipeline_id = input_pipeline_id
        self._num_replicas_in_sync = num_replicas_in_sync

    @property
    def num_input_pipelines(self) -> int:
        """The number of input pipelines, over all processes."""
        return self._num_input_pipelines

    @property
    def input_pipeline_id(self) -> int:
        """The index of this pipeline, from 0."""
        return self._input_pipeline_id

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas, over all processes."""
        return self._num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Return the number of examples of a batch for each replica.

        Raises:
            ValueError: the replicas cannot share the batch evenly.
        """
        if global_batch_size % self._num_replicas_in_sync:
            raise ArgumentValueError(
                f"The `global_batch_size` {global_batch_size} is not divisible by `num_replicas_in_sync` "
                f"{self._num_replicas_in_sync}"
            )
        return global_batch_size // self._num_replicas_in_sync

    def __str__(self) -> str:
        return (
            f"tf.distribute.InputContext(input pipeline id {self._input_pipeline_id}, "
            f"total: {self._num_input_pipelines})"
        )
