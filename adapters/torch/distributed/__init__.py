"""``torch.distributed`` over collshim: ``import collshim.torch.distributed as dist``.

| what | where |
| --- | --- |
| init_process_group, destroy_process_group, is_initialized, is_available | lifecycle |
| new_group, group, GroupMember, get_rank, get_world_size, get_backend, get_process_group_ranks, ... | groups |
| new_subgroups, new_subgroups_by_enumeration, split_group | subgroups |
| all_reduce, reduce, reduce_scatter, reduce_scatter_single, reduce_scatter_tensor | reductions |
| all_gather, all_gather_single, all_gather_into_tensor, gather, gather_single | gathers |
| broadcast, scatter | scatters |
| all_to_all, all_to_all_single | exchanges |
| all_reduce_coalesced, all_gather_coalesced, _coalescing_manager | coalescing |
| all_gather_object, gather_object, broadcast_object_list, scatter_object_list, send_object_list, ... | objects |
| send, recv, isend, irecv | point_to_point |
| P2POp, batch_isend_irecv | batches |
| barrier, monitored_barrier | synchronization |
| each collective over a communicator, which all of these post | collectives, posting |
| Work, what profilers see | work, profiling |
| the differentiable collectives of ``nn.functional`` | nn |
| the backend ``collshim`` of torch's own module, for DistributedDataParallel and others | c10d |
| torch's own functions that make groups, for libraries, while torch has a stand-in | libraries |

Names, signatures, defaults and exceptions are those of torch 2.13.0; ``gather_single``, ``gather_into_tensor`` and
``set_timeout`` are those of torch 2.15.0. Results are written into the arrays that the caller passes (torch tensors,
NumPy arrays, CuPy arrays, anything that supports DLPack). A call returns None, or a ``Work`` with ``async_op=True``.
What torch documents but gloo refuses works here; what gloo accepts although it corrupts the data raises an error here.
Gradients do not flow through these functions, as in torch; the functions of ``nn.functional`` are differentiable.

All other names, such as ``FileStore``, ``DeviceMesh`` or ``fsdp``, are torch's own, including submodules.

Deliberate differences from torch: expanded tensors are refused; sparse tensors are refused by all functions except
``all_reduce``; the default deadline of a wait comes from ``collshim.options``, and is not 30 minutes; if ``new_group``
is called without a timeout, the new group has the default group's timeout.
"""

from __future__ import annotations

from typing import Any

from torch import distributed as _torch

from collshim.torch.distributed import distributed_c10d as distributed_c10d
from collshim.torch.distributed import nn as nn
from collshim.torch.distributed.c10d import backend as _backend
from collshim.torch.distributed.distributed_c10d import *  # noqa: F403  # as torch has them
from collshim.torch.distributed.distributed_c10d import _all_gather_base as _all_gather_base
from collshim.torch.distributed.distributed_c10d import _coalescing_manager as _coalescing_manager
from collshim.torch.distributed.distributed_c10d import _rank_not_in_group as _rank_not_in_group
from collshim.torch.distributed.distributed_c10d import _reduce_scatter_base as _reduce_scatter_base

__all__: list[str] = []
__all__ += distributed_c10d.__all__

_backend.register()


def __getattr__(name: str) -> Any:
    return getattr(_torch, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_torch)})
