"""``torch.distributed.distributed_c10d``: the collectives and their helpers; all other names are torch's own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from torch.distributed import ReduceOp
from torch.distributed import distributed_c10d as _torch

from collshim.torch.distributed.batches import P2POp, batch_isend_irecv
from collshim.torch.distributed.coalescing import _coalescing_manager as _coalescing_manager
from collshim.torch.distributed.coalescing import (
    all_gather_coalesced,
    all_reduce_coalesced,
)
from collshim.torch.distributed.exchanges import all_to_all, all_to_all_single
from collshim.torch.distributed.gathers import _all_gather_base as _all_gather_base
from collshim.torch.distributed.gathers import (
    all_gather,
    all_gather_into_tensor,
    all_gather_single,
    gather,
    gather_into_tensor,
    gather_single,
)
from collshim.torch.distributed.groups import (
    GroupMember,
    get_backend,
    get_backend_config,
    get_backend_impl,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    new_group,
    set_timeout,
)
from collshim.torch.distributed.groups import _rank_not_in_group as _rank_not_in_group
from collshim.torch.distributed.lifecycle import (
    destroy_process_group,
    init_process_group,
    is_available,
    is_initialized,
)
from collshim.torch.distributed.membership import Group, ProcessGroup, require_membership
from collshim.torch.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from collshim.torch.distributed.point_to_point import irecv, isend, recv, send
from collshim.torch.distributed.reductions import _reduce_scatter_base as _reduce_scatter_base
from collshim.torch.distributed.reductions import (
    all_reduce,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
)
from collshim.torch.distributed.scatters import broadcast, scatter
from collshim.torch.distributed.subgroups import new_subgroups, new_subgroups_by_enumeration, split_group
from collshim.torch.distributed.synchronization import barrier, monitored_barrier
from collshim.torch.distributed.work import Work

__all__ = [
    "GroupMember",
    "P2POp",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_coalesced",
    "all_gather_into_tensor",
    "all_gather_object",
    "all_gather_single",
    "all_reduce",
    "all_reduce_coalesced",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "batch_isend_irecv",
    "broadcast",
    "broadcast_object_list",
    "destroy_process_group",
    "gather",
    "gather_into_tensor",
    "gather_object",
    "gather_single",
    "get_backend",
    "get_backend_config",
    "get_backend_impl",
    "get_global_rank",
    "get_group_rank",
    "get_node_local_rank",
    "get_pg_count",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "monitored_barrier",
    "new_group",
    "new_subgroups",
    "new_subgroups_by_enumeration",
    "recv",
    "recv_object_list",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "scatter_object_list",
    "send",
    "send_object_list",
    "set_timeout",
    "split_group",
]


def _get_default_group() -> ProcessGroup:
    """Return the default group.

    Raises:
        ValueError: the default group is not initialized.
    """
    return require_membership().default


def _get_group_size(group: Group) -> int:  # pyright: ignore[reportUnusedFunction]
    """Return the number of ranks of the group, or of the default group if ``group`` is None."""
    return get_world_size(group)


def _group_or_default_group(group: Group = None) -> Group:  # pyright: ignore[reportUnusedFunction]
    """Return ``group``, or the default group if ``group`` is None."""
    return _get_default_group() if group is None or group is GroupMember.WORLD else group


def _set_pg_timeout(timeout: timedelta, group: Group = None) -> None:  # pyright: ignore[reportUnusedFunction]
    """Set how long waits of the group may take from now on, on this rank."""
    set_timeout(timeout, group)


def __getattr__(name: str) -> Any:
    return getattr(_torch, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_torch)})
