"""``oneflow.env``: this rank's number among the others. Conventions of OneFlow 0.9.0.

A call in a process without a world joins the one that the launcher's environment describes; without a
launcher, a world of one rank.
"""

from __future__ import annotations

from collshim import world


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
