"""``mindspore.communication._comm_helper``: queries of this rank's state, which other packages use."""

from __future__ import annotations

from typing import Any

from collshim.adapting.refusing import refuse
from collshim.mindspore.communication import management
from collshim.mindspore.communication.groups import (
    HCCL_WORLD_COMM_GROUP,
    MCCL_WORLD_COMM_GROUP,
    NCCL_WORLD_COMM_GROUP,
    GlobalComm,
    peek_groups,
)

__all__ = [
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "Backend",
    "GlobalComm",
    "_create_group_helper",
    "_destroy_group_helper",
    "_get_backend",
    "_get_group_rank_from_world_rank_helper",
    "_get_group_ranks",
    "_get_local_rank_helper",
    "_get_local_size_helper",
    "_get_rank_helper",
    "_get_size_helper",
    "_get_world_rank_from_group_rank_helper",
    "_is_available",
    "_is_initialized",
]


def _is_available() -> bool:
    """Return True: collectives are available on every machine."""
    return True


def _is_initialized() -> bool:
    """Return whether ``init`` or ``init_process_group`` was called on this rank, and its world was not destroyed."""
    return peek_groups() is not None


def _get_backend() -> str:
    """Return the backend's name; "hccl" before ``init``."""
    return GlobalComm.BACKEND


class Backend(str):
    """A backend's name, in lower case.

    Raises:
        TypeError: if the name is not a string.
        ValueError: if the name is not ``hccl``, ``nccl`` or ``mccl``.
    """

    __slots__ = ()
    UNDEFINED = "undefined"
    HCCL = "hccl"
    NCCL = "nccl"
    HCCL_MPI = "hccl"
    MCCL = "mccl"

    def __new__(cls, name: Any) -> Backend:
        if not isinstance(name, str):
            refuse(
                TypeError, f"For 'Backend', the class variable 'name' must be a string, but got the type : {type(name)}"
            )
        if name.lower() not in ("hccl", "nccl", "mccl"):
            refuse(ValueError, f"Invalid backend: '{name}'.")
        return super().__new__(cls, name.lower())


_get_rank_helper = management.get_rank
_get_size_helper = management.get_group_size
_get_local_rank_helper = management.get_local_rank
_get_local_size_helper = management.get_local_rank_size
_get_world_rank_from_group_rank_helper = management.get_world_rank_from_group_rank
_get_group_rank_from_world_rank_helper = management.get_group_rank_from_world_rank
_get_group_ranks = management.get_process_group_ranks
_create_group_helper = management.create_group
_destroy_group_helper = management.destroy_group
