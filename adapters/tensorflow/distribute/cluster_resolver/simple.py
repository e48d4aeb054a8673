"""``SimpleClusterResolver``: a cluster described by the program itself. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from typing import Any

from collshim.errors import ArgumentTypeError
from collshim.tensorflow.distribute.cluster_resolver.base import ClusterResolver, with_layer
from collshim.tensorflow.distribute.cluster_resolver.cluster_spec import ClusterSpec


class SimpleClusterResolver(ClusterResolver):
    """A resolver that returns the arguments that it was made with.

    Attributes:
        task_type: the job of which this process is a task.
        task_id: the number of this process in its job.
        rpc_layer: the prefix that ``master`` puts before an address.

    Raises:
        TypeError: ``cluster_spec`` is not a ``tf.train.ClusterSpec``.
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
        self._num_accelerators = num_accelerators or {}
        self.task_type, self.task_id, self.rpc_layer = task_type, task_id, rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """Return the jobs and their tasks' addresses."""
        return self._cluster_spec

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Return the address of a task, or, without a task, of the master.

        Raises:
            ValueError: there is no such task.
        """
        address = self._master
        if task_type is not None and task_id is not None:
            address = self._cluster_spec.task_address(task_type, task_id)
        return with_layer(address, rpc_layer or self.rpc_layer)

    @property
    def environment(self) -> str:
        """The environment, as passed."""
        return self._environment

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Return the numbers passed, by device type; the arguments have no effect."""
        return self._num_accelerators
