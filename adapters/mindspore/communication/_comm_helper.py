"""``mindspore.communication._comm_helper``: whether this rank was initialised, asked as other packages ask it."""

from __future__ import annotations

from collshim.mindspore.communication.groups import (
    HCCL_WORLD_COMM_GROUP,
    MCCL_WORLD_COMM_GROUP,
    NCCL_WORLD_COMM_GROUP,
    GlobalComm,
    initialised,
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
    """True: collectives are there on every machine."""
    return True


def _is_initialized() -> bool:
    """Whether ``init`` or ``init_process_group`` was called on this rank, and nothing ended it."""
    return initialised() is not None


def _get_backend() -> str:
    """The backend's name; "hccl" before ``init``."""
    return GlobalComm.BACKEND
