"""``megengine.distributed``: the process group, its launcher, and helpers for data-parallel training."""

from __future__ import annotations

import sys
from types import ModuleType

from collshim.adapting.absent import saying
from collshim.megengine.distributed import group, helper
from collshim.megengine.distributed._batch import group_end, group_start
from collshim.megengine.distributed._membership import joined as _joined
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

__getattr__ = saying(__name__)


class _Module(ModuleType):
    """The module with MegEngine's property ``backend``, which can be set."""

    @property
    def backend(self) -> str:
        """The name of the group's backend; AssertionError before ``init_process_group``."""
        return get_backend()

    @backend.setter
    def backend(self, name: str) -> None:
        _joined().backend = name


sys.modules[__name__].__class__ = _Module
