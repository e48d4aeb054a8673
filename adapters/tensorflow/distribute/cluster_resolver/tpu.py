"""``TPUClusterResolver``: there are no TPUs here, so that it stands for this process alone."""

from __future__ import annotations

from typing import Any

from collshim.tensorflow.distribute.cluster_resolver.cluster_spec import ClusterSpec


class TPUClusterResolver:
    """Stands for the devices of this process, whichever TPU it is given; the other arguments change nothing."""

    def __init__(
        self,
        tpu: str | None = None,
        zone: str | None = None,
        project: str | None = None,
        job_name: str = "worker",
        coordinator_name: str | None = None,
        coordinator_address: str | None = None,
        credentials: Any = "default",
        service: Any = None,
        discovery_url: str | None = None,
    ) -> None:
        self._tpu = tpu
        self.task_type = job_name
        self.task_id = 0

    @classmethod
    def connect(cls, tpu: str | None = None, zone: str | None = None, project: str | None = None) -> TPUClusterResolver:
        """One for the devices of this process."""
        return cls(tpu, zone, project)

    def cluster_spec(self) -> ClusterSpec:
        """No jobs."""
        return ClusterSpec({})

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """``"local"``, or the name that was given."""
        return self._tpu or "local"
