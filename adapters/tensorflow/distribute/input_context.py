"""``tf.distribute.InputContext``: which part of the input a process reads. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from collshim.errors import ArgumentValueError


class InputContext:
    """Which of several input pipelines this is, and how many replicas share a batch."""

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self._num_input_pipelines = num_input_pipelines
        self._input_pipeline_id = input_pipeline_id
        self._num_replicas_in_sync = num_replicas_in_sync

    @property
    def num_input_pipelines(self) -> int:
        """How many input pipelines there are, over all processes."""
        return self._num_input_pipelines

    @property
    def input_pipeline_id(self) -> int:
        """The number of this one, from 0."""
        return self._input_pipeline_id

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are, over all processes."""
        return self._num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """How many examples of a batch each replica gets.

        Raises:
            ValueError: the replicas cannot share it evenly.
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
