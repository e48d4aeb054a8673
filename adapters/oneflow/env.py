"""``oneflow.env``: this rank and the number of ranks. Conventions of OneFlow 0.9.0.

A call in a process without a world joins the world that the launcher's environment describes; without a launcher, a
world of one rank.
"""

from __future__ import annotations

from collshim import world
from collshim.oneflow.global_tensors import all_device_placement as all_device_placement


def get_rank() -> int:
    """Return this rank, from 0."""
    return world.current().rank


def get_world_size() -> int:
    """Return the number of ranks."""
    return world.current().size


def get_local_rank() -> int:
    """Return this rank's rank on its machine, from 0."""
    return world.current().local_rank


def get_node_size() -> int:
    """Return the number of machines, each with as many ranks as this one."""
    current_world = world.current()
    return -(-current_world.size // current_world.local_size)


def init() -> None:
    """Join the world that the launcher's environment describes, as the first use does anyway.

    OneFlow 0.9.0 joins at import; older and newer releases have this function.
    """
    world.current()


def init_rdma() -> None:
    """Do nothing: the engine chooses how data travels."""


def rdma_is_initialized() -> bool:
    """Return False: RDMA is not available."""
    return False


def destory_rdma() -> None:
    """Do nothing, as ``init_rdma``; the name is OneFlow 0.9.0's spelling."""
