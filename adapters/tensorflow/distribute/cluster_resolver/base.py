"""``tf.distribute.cluster_resolver.ClusterResolver``: the resolvers' base. Source: TensorFlow 2.21, run on CPU."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from typing import Any

import torch

from collshim.tensorflow.distribute.cluster_resolver.cluster_spec import ClusterSpec


class ClusterResolver(ABC):
    """A description of the cluster, from the program, the environment or elsewhere."""

    @abstractmethod
    def cluster_spec(self) -> ClusterSpec:
        """Return the jobs and their tasks' addresses."""

    @abstractmethod
    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Return the address of a task, or, without a task, of the master."""

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Return the number of devices of each type but the CPU that torch sees here; the arguments have no effect."""
        accelerators: dict[str, int] = defaultdict(int)
        if torch.cuda.device_count():
            accelerators["GPU"] = torch.cuda.device_count()
        return accelerators


def with_layer(address: str, rpc_layer: str | None) -> str:
    """Return an address with the prefix of a protocol, if there is one."""
    return f"{rpc_layer}://{address}" if rpc_layer else address
