"""``SimpleClusterResolver``: a cluster that the program itself describes. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from typing import Any

from collshim.errors import ArgumentTypeError
from collshim.tensorflow.distribute.cluster_resolver.cluster_spec import ClusterSpec


class SimpleClusterResolver:
    """Gives back what it was given.

    Attributes:
        task_type: the job that this process is a task of.
        task_id: the number of this process in its job.
        rpc_layer: what ``master`` puts before an address.

    Raises:
        TypeError: ``cluster_spec`` is no ``tf.train.ClusterSpec``.
    """

    def __init__(
        self,
        cluster_spec: ClusterSpec,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: dict[str, int] | None = None,
        rpc_layer: str | None = None,
    ) -> None:
        if not isinstance(cluster_spec, ClusterSpec):
            raise ArgumentTypeError("cluster_spec must be a `tf.train.ClusterSpec`.")
        self._cluster_spec = cluster_spec
        self._master = master
        self._environment = environment
        self._num_accelerators = dict(num_accelerators or {})
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The jobs and their tasks' addresses."""
        return self._cluster_spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """The address of a task, or without one the master's that was given.

        Raises:
            ValueError: no such task.
        """
        address = self._master
        if task_type is not None and task_id is not None:
            address = self._cluster_spec.task_address(task_type, task_id)
        layer = rpc_layer or self.rpc_layer
        return f"{layer}://{address}" if layer else address

    @property
    def environment(self) -> str:
        """What it was given."""
        return self._environment

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """What it was given, by kind; the arguments change nothing."""
        return self._num_accelerators
