"""``TPUClusterResolver``: a resolver for this process only, as there are no TPUs here."""

from __future__ import annotations

from typing import Any

from collshim.tensorflow.distribute.cluster_resolver.cluster_spec import ClusterSpec


class TPUClusterResolver:
    """A resolver for the devices of this process, whichever TPU is named; the other arguments have no effect."""

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
        """Return a resolver for the devices of this process."""
        return cls(tpu, zone, project)

    def cluster_spec(self) -> ClusterSpec:
        """Return a cluster without jobs."""
        return ClusterSpec({})

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Return ``"local"``, or the name that was passed."""
        return self._tpu or "local"
