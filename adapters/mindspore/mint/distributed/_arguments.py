"""What ``mint.distributed`` requires of its arguments, in MindSpore's words; how it waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_torch, is_array
from collshim.mindspore.common.dtype import dtype_name
from collshim.mindspore.communication.comm_func.handle import CommHandle
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP, Group, resolved
from collshim.mindspore.tensor import comes_into, settle
from collshim.work import Work

OPS = ("sum", "prod", "min", "max", "avg")


def group_of(group: str | None) -> Group:
    """The group of that name; the world for None."""
    if group is None:
        return resolved(HCCL_WORLD_COMM_GROUP)
    if not isinstance(group, str):
        refuse(TypeError, f"The argument 'group' must be type of string, but got 'group' type : {type(group)}.")
    return resolved(group)


def memory(function: str, tensor: Array) -> Array:
    """What is read or written: without its gradient, which no collective here has."""
    if not is_array(tensor):
        refuse(TypeError, f"For {function}, the input tensor must be tensor, but got {type(tensor)}")
    settle(tensor)
    return as_torch(tensor).detach() if isinstance(tensor, torch.Tensor) else tensor


def memories(tensors: Any, group: Group, *, counted: bool = True) -> list[Array]:
    """A list of tensors; one per rank where they are ``counted``."""
    if not isinstance(tensors, list | tuple):
        refuse(TypeError, f"Expected list or tuple, but got {type(tensors)}.")
    for tensor in tensors:
        if not is_array(tensor):
            refuse(TypeError, f"Expected tensor, but got {type(tensor)}")
    if counted:
        require_length("The argument list tensor len", tensors, group)
    return [memory("list", tensor) for tensor in tensors]


def require_length(what: str, values: Sequence[Any], group: Group) -> None:
    """Refuse a list with another length than the group has ranks."""
    if len(values) != group.communicator.size:
        refuse(TypeError, f"{what} must be equal to group rank size, but got {len(values)}.")


def require_like(function: str, output: Array, tensor: Array) -> None:
    """Refuse an output of another shape or dtype than what comes into it; the words are MindSpore's."""
    if tuple(output.shape) != tuple(tensor.shape):
        shapes = f"{tuple(output.shape)}, but got {tuple(tensor.shape)}."
        refuse(TypeError, f"For {function}, the output shape should be {shapes}")
    dtypes = [as_torch(array).dtype for array in (output, tensor)]
    if dtypes[0] is not dtypes[1]:
        names = f"{dtype_name(dtypes[0])}, but got {dtype_name(dtypes[1])}."
        refuse(TypeError, f"For {function}, the output dtype should be {names}")


def require_op(function: str, op: Any) -> None:
    """Refuse what is no reduction."""
    if not isinstance(op, str):
        refuse(TypeError, f"For {function}, the input op type must be str, but got {type(op)}")
    if op not in OPS:
        refuse(TypeError, f"For {function}, the input op value must be one of {', '.join(OPS)}, but got {op!r}")


def require_flag(async_op: Any) -> None:
    """Refuse what is no bool."""
    if not isinstance(async_op, bool):
        refuse(TypeError, f"The argument 'async_op' must be a bool, but got {type(async_op)}.")


def require_rank(function: str, what: str, rank: Any) -> None:
    """Refuse a rank that is no int."""
    if not isinstance(rank, int):
        refuse(TypeError, f"For {function}, the {what} must be int, but got {type(rank)}")


def finished(work: Work[Any], async_op: bool, *outputs: Array) -> CommHandle | None:
    """None when the result is there; a handle at once with ``async_op``, and who reads the outputs waits."""
    if not async_op:
        work.wait()
        return None
    for output in outputs:
        comes_into(output, work)
    return CommHandle(work)
