"""``torch.distributed`` over collshim: ``import collshim.torch.distributed as dist``.

| what | where |
| --- | --- |
| init_process_group, destroy_process_group, is_initialized, is_available | lifecycle |
| new_group, group, GroupMember, get_rank, get_world_size, get_backend, get_process_group_ranks, ... | groups |
| new_subgroups, new_subgroups_by_enumeration, split_group | subgroups |
| all_reduce, reduce, reduce_scatter, reduce_scatter_single, reduce_scatter_tensor | reductions |
| all_gather, all_gather_single, all_gather_into_tensor, gather | gathers |
| broadcast, scatter | scatters |
| all_to_all, all_to_all_single | exchanges |
| all_reduce_coalesced, all_gather_coalesced, _coalescing_manager | coalescing |
| all_gather_object, gather_object, broadcast_object_list, scatter_object_list, send_object_list, ... | objects |
| send, recv, isend, irecv | point_to_point |
| P2POp, batch_isend_irecv | batches |
| barrier, monitored_barrier | synchronization |
| Work, what profilers see | work, profiling |
| the differentiable collectives of ``nn.functional`` | nn |
| the backend ``collshim`` of torch's own module, for DistributedDataParallel and others | c10d |

Names, signatures, defaults and exceptions are those of torch 2.13.0; results are written into the arrays that are given
(torch tensors, NumPy arrays, CuPy arrays, anything with DLPack), and a call returns None, or with ``async_op=True`` a
``Work``. What torch documents and gloo refuses works; what gloo lets pass and corrupts is an error. Gradients do not
flow through these functions, as in torch; those of ``nn.functional`` are differentiable.

Every other name, such as ``FileStore``, ``DeviceMesh`` or ``fsdp``, is torch's own, submodules included.

Where it differs from torch on purpose: sparse and expanded tensors are refused, a wait's default deadline is
``collshim.options``' and not 30 minutes, and a group of ``new_group`` without a timeout has the default group's.
"""

from __future__ import annotations

from typing import Any

from torch import distributed as _torch
from torch.distributed import ReduceOp

from collshim.torch.distributed import distributed_c10d as distributed_c10d
from collshim.torch.distributed import nn as nn
from collshim.torch.distributed.batches import P2POp, batch_isend_irecv
from collshim.torch.distributed.c10d import backend as _backend
from collshim.torch.distributed.coalescing import (
    _coalescing_manager as _coalescing_manager,
)
from collshim.torch.distributed.coalescing import (
    all_gather_coalesced,
    all_reduce_coalesced,
)
from collshim.torch.distributed.exchanges import all_to_all, all_to_all_single
from collshim.torch.distributed.gathers import (
    _all_gather_base as _all_gather_base,
)
from collshim.torch.distributed.gathers import (
    all_gather,
    all_gather_into_tensor,
    all_gather_single,
    gather,
)
from collshim.torch.distributed.groups import (
    GroupMember,
    get_backend,
    get_backend_config,
    get_global_rank,
    get_group_rank,
    get_node_local_rank,
    get_pg_count,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    new_group,
)
from collshim.torch.distributed.groups import (
    _rank_not_in_group as _rank_not_in_group,
)
from collshim.torch.distributed.lifecycle import (
    destroy_process_group,
    init_process_group,
    is_available,
    is_initialized,
)
from collshim.torch.distributed.membership import ProcessGroup
from collshim.torch.distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from collshim.torch.distributed.point_to_point import irecv, isend, recv, send
from collshim.torch.distributed.reductions import (
    _reduce_scatter_base as _reduce_scatter_base,
)
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
    "gather_object",
    "get_backend",
    "get_backend_config",
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
    "split_group",
]

_backend.register()


def __getattr__(name: str) -> Any:
    return getattr(_torch, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_torch)})
