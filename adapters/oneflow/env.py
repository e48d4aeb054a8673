"""``oneflow.env``: this rank's number among the others. Conventions of OneFlow 0.9.0.

A call in a process without a world joins the one that the launcher's environment describes; without a
launcher, a world of one rank.
"""

from __future__ import annotations

from collshim import world
from collshim.oneflow.global_tensors import all_device_placement as all_device_placement


def get_rank() -> int:
    """This rank's number among all ranks, from 0."""
    return world.current().rank


def get_world_size() -> int:
    """How many ranks there are."""
    return world.current().size


def get_local_rank() -> int:
    """This rank's number among the ranks of its machine, from 0."""
    return world.current().local_rank


def get_node_size() -> int:
    """How many machines the ranks run on, each with as many ranks as this one."""
    current_world = world.current()
    return -(-current_world.size // current_world.local_size)


def init() -> None:
    """Join the world that the launcher's environment describes, which the first use does too.

    OneFlow 0.9.0 does it at import; the function is that of older and newer releases.
    """
    world.current()


def init_rdma() -> None:
    """Nothing: what carries the data is chosen by the engine."""


def rdma_is_initialized() -> bool:
    """Whether RDMA was asked for and is there: False."""
    return False


def destory_rdma() -> None:
    """Nothing, as ``init_rdma``; the name is spelled as OneFlow 0.9.0 spells it."""
