"""``torch.distributed.distributed_c10d``: the names of ``collshim.torch.distributed``, and torch's own others."""

from __future__ import annotations

from typing import Any

from torch.distributed import distributed_c10d as _torch

from collshim.torch import distributed as _distributed
from collshim.torch.distributed.groups import GroupMember, _rank_not_in_group, get_world_size
from collshim.torch.distributed.membership import Group, ProcessGroup, required

__all__ = ["_get_default_group", "_get_group_size", "_group_or_default_group", "_rank_not_in_group"]


def _get_default_group() -> ProcessGroup:
    """The group of all ranks.

    Raises:
        ValueError: no default group yet.
    """
    return required().default


def _get_group_size(group: Group) -> int:
    """How many ranks the group has; the default group where none is given."""
    return get_world_size(group)


def _group_or_default_group(group: Group = None) -> Group:
    """``group``, or the default one where none is given."""
    return _get_default_group() if group is None or group is GroupMember.WORLD else group


def __getattr__(name: str) -> Any:
    covered = name in _distributed.__all__ or name in (
        "_all_gather_base",
        "_coalescing_manager",
        "_reduce_scatter_base",
    )
    return getattr(_distributed if covered else _torch, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *_distributed.__all__, *dir(_torch)})
