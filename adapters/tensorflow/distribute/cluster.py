"""The world of a ``MultiWorkerMirroredStrategy``, and TensorFlow's own description of a cluster.

``TF_CONFIG`` is JSON: ``{"cluster": {"worker": ["host:port", ...]}, "task": {"type": "worker", "index": 0}}``, with an
optional job ``chief``, whose single task is the first. The first task's address is the address of the ranks' store.
Source: TensorFlow 2.21, guide to distributed training.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from collshim import world
from collshim.errors import ArgumentValueError, WorldError


class Cluster(NamedTuple):
    """The tasks' addresses in rank order, and the rank of this process."""

    addresses: tuple[str, ...]
    rank: int


def world_of(cluster_resolver: Any) -> world.World:
    """Return the caller's world, or join the one that the resolver or ``TF_CONFIG`` describes.

    Raises:
        ArgumentValueError: the resolver contradicts the existing world.
        WorldError: ``TF_CONFIG`` cannot be read.
    """
    cluster = None if cluster_resolver is None else _resolve(cluster_resolver)
    current_world = world.peek()
    if current_world is None and not os.environ.get("RANK"):
        cluster = cluster or _read_tf_config()
        if cluster is not None and len(cluster.addresses) > 1:
            return _join(cluster)
    current_world = current_world or world.current()
    if cluster is not None and (len(cluster.addresses), cluster.rank) != (current_world.size, current_world.rank):
        raise ArgumentValueError(
            f"cluster_resolver is for rank {cluster.rank} of {len(cluster.addresses)}, should be for this world: "
            f"rank {current_world.rank} of {current_world.size}"
        )
    return current_world


def _join(cluster: Cluster) -> world.World:
    host, _, port = cluster.addresses[0].rpartition(":")
    if not host or not port.isdigit():
        raise ArgumentValueError(f"the first task's address is {cluster.addresses[0]!r}, should be 'host:port'")
    return world.init(cluster.rank, len(cluster.addresses), address=host, port=int(port))


def _resolve(resolver: Any) -> Cluster | None:
    return _cluster(resolver.cluster_spec().as_dict(), resolver.task_type, resolver.task_id)


def _read_tf_config() -> Cluster | None:
    text = os.environ.get("TF_CONFIG")
    if not text:
        return None
    try:
        config = json.loads(text)
        task = config.get("task", {})
        return _cluster(config.get("cluster", {}), task.get("type"), task.get("index"))
    except (ValueError, AttributeError) as error:
        raise WorldError(f"TF_CONFIG is {text!r}, should be JSON with a cluster and a task: {error}") from error


def _cluster(jobs: Mapping[str, Sequence[str]], task_type: Any, task_id: Any) -> Cluster | None:
    addresses = tuple(address for job in ("chief", "worker") for address in jobs.get(job, ()))
    if not addresses:
        return None
    chiefs = len(jobs.get("chief", ())) if task_type == "worker" else 0
    if task_type not in jobs or task_type not in ("chief", "worker"):
        raise ArgumentValueError(f"task_type is {task_type!r}, should be a job of the cluster: 'chief' or 'worker'")
    if not isinstance(task_id, int) or not 0 <= task_id < len(jobs[task_type]):
        raise ArgumentValueError(f"task_id is {task_id!r}, should be from 0 to {len(jobs[task_type]) - 1}")
    return Cluster(addresses, chiefs + task_id)
