"""Validation of ``comm_func``'s arguments, before anything is sent, in MindSpore's words."""

from __future__ import annotations

from typing import Any, NoReturn

from torch import Tensor

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_torch, is_array
from collshim.calls.validation import refuse_kind, tensor_of
from collshim.communicator import Communicator
from collshim.layout import split
from collshim.mindspore.communication.arguments import require_name
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP, Group, groups, resolve_group


def require_tensor(function: str, tensor: Array) -> None:
    """Refuse a value that is not an array."""
    if not is_array(tensor):
        refuse(TypeError, f"For {function}, the input tensor must be tensor, but got {type(tensor)}")


def require_dense(comm: Communicator, function: str, tensor: Array) -> Tensor:
    """Return an array as a tensor, to be cut before the engine receives it; refuse sparse and meta tensors."""
    dense_tensor = tensor_of(comm, function, tensor)
    refuse_kind(comm, function, dense_tensor)
    return dense_tensor


def require_rank(function: str, what: str, rank: int) -> None:
    """Refuse a rank that is not an int."""
    if not isinstance(rank, int):
        refuse(TypeError, f"For {function}, the {what} must be int, but got {type(rank)}")


def require_flag(async_op: Any) -> None:
    """Refuse a value that is not a bool."""
    if not isinstance(async_op, bool):
        refuse(TypeError, f"The argument 'async_op' must be a bool, but got {type(async_op)}.")


def require_group(group: str) -> Group:
    """Return the group of that name; refuse None and other types."""
    require_name("get_group_size", group)
    return resolve_group(group)


def group_or_world(group: str | None) -> Group:
    """Return the group of that name; the world for None."""
    return require_group(HCCL_WORLD_COMM_GROUP if group is None else group)


def root_in(group: Group, rank: int) -> int:
    """Return a root's rank in ``group``; raise RuntimeError if the global rank is not in it, TypeError if negative."""
    if rank < 0:
        refuse(TypeError, f"a root must be a global rank from 0 on, but got {rank}")
    if rank not in group.ranks:
        refuse(RuntimeError, f"Group {group.name} doesn't contain the global rank {rank}")
    return group.ranks.index(rank)


def peer_in(group: Group, rank: int) -> int:
    """Return the rank in ``group`` of a global rank that sends or receives; raise KeyError if it is not a member."""
    if rank not in group.ranks:
        _refuse_peer("world_rank_id", group.name, rank)
    return group.ranks.index(rank)


def group_of_peer(group: Any, rank: int) -> Group:
    """Return the group in which a global rank sends or receives; raise KeyError if this rank has no such group."""
    state = groups()
    if not isinstance(group, str) or group not in (*state.by_name, state.world_name, HCCL_WORLD_COMM_GROUP):
        _refuse_peer("group", group, rank)
    return resolve_group(group)


def _refuse_peer(what: str, group: Any, rank: int) -> NoReturn:
    text = f"'{what}' is not found in GROUP_RANKS, 'group' : {group}, 'world_rank_id' : {rank}"
    refuse(KeyError, f"For 'get_group_rank_from_world_rank_from_cache', the argument {text}")


def divide(tensor: Array, size: int) -> Tensor:
    """Cut ``tensor`` into ``size`` parts along its first dimension, stacked in rank order."""
    whole = as_torch(tensor)
    length = whole.shape[0] if whole.dim() else 1
    if whole.dim() == 0 or length % size:
        refuse(
            ValueError,
            "the first dimension for 'input_shape' must be divided by 'rank_size', but got input_shape[0]: "
            f"{length}, rank_size: {size}",
        )
    return split(whole, size)
