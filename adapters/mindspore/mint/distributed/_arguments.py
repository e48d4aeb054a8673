"""Validation of ``mint.distributed``'s arguments, in MindSpore's words, and waits for results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from collshim import world
from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_torch, is_array
from collshim.mindspore.common.dtype import dtype_name
from collshim.mindspore.communication.comm_func.arguments import group_of_peer, peer_in
from collshim.mindspore.communication.comm_func.arguments import require_flag as require_flag
from collshim.mindspore.communication.comm_func.handle import CommHandle
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP, Group, resolve_group
from collshim.mindspore.tensor import set_pending_work, settle
from collshim.work import Work

OPS = ("sum", "prod", "min", "max", "avg")


def group_of(group: str | None) -> Group:
    """Return the group of that name; the world for None."""
    if group is None:
        return resolve_group(HCCL_WORLD_COMM_GROUP)
    if not isinstance(group, str):
        refuse(TypeError, f"The argument 'group' must be type of string, but got 'group' type : {type(group)}.")
    return resolve_group(group)


def group_and_peer(group: str | None, rank: int, *, sends: bool = False) -> tuple[Group, int]:
    """Return the group, and the rank in it of a message's peer, ``rank``; check both in MindSpore's order."""
    if group is not None and not isinstance(group, str):
        group_of(group)
    if sends and rank == world.current().rank:
        text = "destination rank should not be the same as the rank of the current process."
        refuse(ValueError, f"Invalid destination rank: {text}")
    members = group_of_peer(HCCL_WORLD_COMM_GROUP if group is None else group, rank)
    return members, peer_in(members, rank)


def memory(function: str, tensor: Array) -> Array:
    """Return the memory to read or write, detached, because no gradient flows through ``mint.distributed``."""
    if not is_array(tensor):
        refuse(TypeError, f"For {function}, the input tensor must be tensor, but got {type(tensor)}")
    settle(tensor)
    return as_torch(tensor).detach() if isinstance(tensor, torch.Tensor) else tensor


def memories(tensors: Any, group: Group, *, counted: bool = True) -> list[Array]:
    """Return the memory of each tensor in a list; if ``counted``, refuse a list without one tensor per rank."""
    if not isinstance(tensors, list | tuple):
        refuse(TypeError, f"Expected list or tuple, but got {type(tensors)}.")
    for tensor in tensors:
        if not is_array(tensor):
            refuse(TypeError, f"Expected tensor, but got {type(tensor)}")
    if counted:
        require_length("The argument list tensor len", tensors, group)
    return [memory("list", tensor) for tensor in tensors]


def require_length(what: str, values: Sequence[Any], group: Group) -> None:
    """Refuse a list whose length is not the number of ranks in the group."""
    if len(values) != group.communicator.size:
        refuse(TypeError, f"{what} must be equal to group rank size, but got {len(values)}.")


def require_like(function: str, output: Array, tensor: Array) -> None:
    """Refuse an output whose shape or dtype is not the tensor's, in MindSpore's words."""
    if tuple(output.shape) != tuple(tensor.shape):
        shapes = f"{tuple(output.shape)}, but got {tuple(tensor.shape)}."
        refuse(TypeError, f"For {function}, the output shape should be {shapes}")
    dtypes = [as_torch(array).dtype for array in (output, tensor)]
    if dtypes[0] is not dtypes[1]:
        names = f"{dtype_name(dtypes[0])}, but got {dtype_name(dtypes[1])}."
        refuse(TypeError, f"For {function}, the output dtype should be {names}")


def require_dtype(primitive: str, output: Array, tensor: Array) -> None:
    """Refuse an output whose dtype is not the tensor's; ``primitive`` is the one that MindSpore names."""
    dtypes = [dtype_name(as_torch(array).dtype) for array in (output, tensor)]
    if dtypes[0] != dtypes[1]:
        text = f"output_tensor type {dtypes[0]} must be equal to input_tensor type {dtypes[1]}"
        refuse(ValueError, f"For {primitive!r}, {text}")


def require_op(function: str, op: Any) -> None:
    """Refuse a value that is not a reduction."""
    if not isinstance(op, str):
        refuse(TypeError, f"For {function}, the input op type must be str, but got {type(op)}")
    if op not in OPS:
        refuse(TypeError, f"For {function}, the input op value must be one of {', '.join(OPS)}, but got {op!r}")


def require_rank(function: str, what: str, rank: Any) -> None:
    """Refuse a rank that is not an int."""
    if not isinstance(rank, int):
        refuse(TypeError, f"For {function}, the {what} must be int, but got {type(rank)}")


def finish(work: Work[Any], async_op: bool, *outputs: Array) -> CommHandle | None:
    """Wait for ``work`` and return None; with ``async_op`` return a handle, and make reads of the outputs wait."""
    if not async_op:
        work.wait()
        return None
    for output in outputs:
        set_pending_work(output, work)
    return CommHandle(work)
