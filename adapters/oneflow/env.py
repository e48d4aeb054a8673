"""``oneflow.env``: where this rank stands among the others. Conventions of OneFlow 0.9.0.

A call in a process without a world joins the one that the launcher's environment tells of; without a
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
    here = world.current()
    return -(-here.size // here.local_size)
