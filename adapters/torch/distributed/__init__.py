"""``torch.distributed`` over collshim: ``import collshim.torch.distributed as dist``.

| what | where |
| --- | --- |
| init_process_group, destroy_process_group, is_initialized, is_available | lifecycle |
| new_group, group, GroupMember, get_rank, get_world_size, get_backend, get_process_group_ranks, ... | groups |
| all_reduce, reduce, reduce_scatter, reduce_scatter_single, reduce_scatter_tensor | reductions |
| all_gather, all_gather_single, all_gather_into_tensor, gather | gathers |
| broadcast, scatter | scatters |
| all_to_all, all_to_all_single | exchanges |
| send, recv, isend, irecv | point_to_point |
| barrier | synchronization |

Names, signatures, defaults and exceptions are those of torch 2.13.0; results are written into the arrays that are given
(torch tensors, NumPy arrays, CuPy arrays, anything with DLPack), and a call returns None, or with ``async_op=True`` a
``Work``. What torch documents and gloo refuses works; what gloo lets pass and corrupts is an error. Gradients do not
flow through these functions, as in torch.

Where it differs from torch on purpose: groups carry no collectives as methods and are no torch ProcessGroup, sparse
and expanded tensors are refused, a wait's default deadline is ``collshim.options``' and not 30 minutes, and a group of
``new_group`` without a timeout has the default group's.
"""

from __future__ import annotations

from typing import Any

from torch import distributed as _torch
from torch.distributed import ReduceOp

from collshim.errors import CollshimError, also
from collshim.torch.distributed.exchanges import all_to_all, all_to_all_single
from collshim.torch.distributed.gathers import all_gather, all_gather_into_tensor, all_gather_single, gather
from collshim.torch.distributed.groups import (
    GroupMember,
    get_backend,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    new_group,
)
from collshim.torch.distributed.lifecycle import (
    destroy_process_group,
    init_process_group,
    is_available,
    is_initialized,
)
from collshim.torch.distributed.membership import ProcessGroup
from collshim.torch.distributed.point_to_point import irecv, isend, recv, send
from collshim.torch.distributed.reductions import (
    all_reduce,
    reduce,
    reduce_scatter,
    reduce_scatter_single,
    reduce_scatter_tensor,
)
from collshim.torch.distributed.scatters import broadcast, scatter
from collshim.torch.distributed.synchronization import barrier
from collshim.torch.distributed.work import Work

__all__ = [
    "GroupMember",
    "ProcessGroup",
    "ReduceOp",
    "Work",
    "all_gather",
    "all_gather_into_tensor",
    "all_gather_single",
    "all_reduce",
    "all_to_all",
    "all_to_all_single",
    "barrier",
    "broadcast",
    "destroy_process_group",
    "gather",
    "get_backend",
    "get_global_rank",
    "get_group_rank",
    "get_process_group_ranks",
    "get_rank",
    "get_world_size",
    "group",
    "init_process_group",
    "irecv",
    "is_available",
    "is_initialized",
    "isend",
    "new_group",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_single",
    "reduce_scatter_tensor",
    "scatter",
    "send",
]

_TORCHS = frozenset(
    {
        "Backend",
        "DebugLevel",
        "DistBackendError",
        "DistError",
        "DistNetworkError",
        "DistStoreError",
        "FileStore",
        "HashStore",
        "PrefixStore",
        "Store",
        "TCPStore",
        "default_pg_timeout",
        "get_debug_level",
        "get_default_backend_for_device",
        "is_backend_available",
        "is_gloo_available",
        "is_mpi_available",
        "is_nccl_available",
        "is_torchelastic_launched",
        "is_ucc_available",
        "is_xccl_available",
        "reduce_op",
        "register_rendezvous_handler",
        "rendezvous",
        "set_debug_level",
        "set_debug_level_from_env",
        "supports_complex",
    }
)
"""Torch's own names that move no data and know no group."""


def __getattr__(name: str) -> Any:
    if name in _TORCHS:
        return getattr(_torch, name)
    raise also(CollshimError, AttributeError)(
        f"module {__name__!r} has no attribute {name!r}: of torch.distributed, collshim covers {', '.join(__all__)}; "
        "torch's own function would reach another process group than these"
    )


def __dir__() -> list[str]:
    return sorted({*__all__, *_TORCHS})
