"""``TFConfigClusterResolver``: the cluster of ``TF_CONFIG``. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

import json
import os
from typing import Any

from collshim.errors import ArgumentValueError
from collshim.tensorflow.distribute.cluster_resolver.base import ClusterResolver, with_layer
from collshim.tensorflow.distribute.cluster_resolver.cluster_spec import ClusterSpec


class TFConfigClusterResolver(ClusterResolver):
    """A resolver that reads ``TF_CONFIG`` at every call; arguments and assigned values have precedence over it.

    Attributes:
        environment: the environment that was passed; in TensorFlow it is None or ``"google"``.

    Raises:
        ValueError: ``TF_CONFIG`` is not a JSON object. The methods raise it.
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        self._task_type = task_type
        self._task_id = task_id
        self._rpc_layer = rpc_layer
        self.environment = environment

    @property
    def task_type(self) -> str | None:
        """The job of which this process is a task."""
        return self._task_type if self._task_type is not None else _task().get("type")

    @task_type.setter
    def task_type(self, task_type: str) -> None:
        self._task_type = task_type

    @property
    def task_id(self) -> int | None:
        """The number of this process in its job."""
        if self._task_id is not None:
            return self._task_id
        index = _task().get("index")
        return None if index is None else int(index)

    @task_id.setter
    def task_id(self, task_id: int) -> None:
        self._task_id = task_id

    @property
    def rpc_layer(self) -> str | None:
        """The prefix that ``master`` puts before an address."""
        return self._rpc_layer if self._rpc_layer is not None else _config().get("rpc_layer")

    @rpc_layer.setter
    def rpc_layer(self, rpc_layer: str) -> None:
        self._rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """Return the jobs and their tasks' addresses; none without ``TF_CONFIG``."""
        return ClusterSpec(_config().get("cluster", {}))

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Return a task's address, by default this process's; empty if the cluster has at most one task."""
        spec = self.cluster_spec()
        if sum(spec.num_tasks(job) for job in spec.jobs) <= 1:
            return ""
        job = self.task_type if task_type is None else task_type
        index = self.task_id if task_id is None else task_id
        address = spec.task_address(job or "", -1 if index is None else index)
        return with_layer(address, rpc_layer or self.rpc_layer)


def _task() -> dict[str, Any]:
    task: dict[str, Any] = _config().get("task", {})
    return task


def _config() -> dict[str, Any]:
    text = os.environ.get("TF_CONFIG") or "{}"
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ArgumentValueError(f"TF_CONFIG is {text!r}, should be JSON: {error}") from error
    if not isinstance(config, dict):
        raise ArgumentValueError(f"TF_CONFIG is {text!r}, should be a JSON object")
    return config
