"""``mindspore.communication._comm_helper``: the queries of this rank's state that other packages use."""

from __future__ import annotations

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
    "GlobalComm",
    "_get_backend",
    "_is_available",
    "_is_initialized",
]


def _is_available() -> bool:
    """Return True: collectives are available on every machine."""
    return True


def _is_initialized() -> bool:
    """Check whether ``init`` or ``init_process_group`` was called on this rank, and its world was not destroyed."""
    return peek_groups() is not None


def _get_backend() -> str:
    """Return the backend's name; "hccl" before ``init``."""
    return GlobalComm.BACKEND
