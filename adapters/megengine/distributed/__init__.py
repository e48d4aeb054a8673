"""``megengine.distributed``: the process group, its launcher, and helpers for data-parallel training."""

from __future__ import annotations

from typing import Any

from collshim.adapting.absent import saying
from collshim.megengine.distributed import group, helper
from collshim.megengine.distributed._batch import group_end, group_start
from collshim.megengine.distributed.group import (
    WORLD,
    Group,
    get_backend,
    get_client,
    get_mm_server_addr,
    get_py_server_addr,
    get_rank,
    get_world_size,
    group_barrier,
    init_process_group,
    is_distributed,
    new_group,
    override_backend,
)
from collshim.megengine.distributed.helper import bcast_list_, make_allreduce_cb, synchronized
from collshim.megengine.distributed.launcher import launcher
from collshim.megengine.distributed.server import Client, Server

__all__ = [
    "WORLD",
    "Client",
    "Group",
    "Server",
    "bcast_list_",
    "get_backend",
    "get_client",
    "get_mm_server_addr",
    "get_py_server_addr",
    "get_rank",
    "get_world_size",
    "group",
    "group_barrier",
    "group_end",
    "group_start",
    "helper",
    "init_process_group",
    "is_distributed",
    "launcher",
    "make_allreduce_cb",
    "new_group",
    "override_backend",
    "synchronized",
]

_absent = saying(__name__)


def __getattr__(name: str) -> Any:
    # MegEngine's module has a property of this name: the group's current backend.
    return get_backend() if name == "backend" else _absent(name)
