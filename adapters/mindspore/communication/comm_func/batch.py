"""batch_isend_irecv: several sends and receives at once. Conventions of MindSpore 2.10.0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_torch, is_array
from collshim.mindspore.communication.comm_func.arguments import group_or_world, peer_in, require_dense
from collshim.mindspore.communication.comm_func.handle import CommHandle, in_kind_of
from collshim.mindspore.communication.comm_func.point_to_point import irecv, isend


class P2POp:
    """One send or receive of ``batch_isend_irecv``.

    Args:
        op: "isend" or "irecv", or the function with that name.
        tensor: the tensor to send; or a tensor with the shape and dtype to receive, or a shape with ``recv_dtype``.
        peer: the global rank with which this rank exchanges the message.
        group: the group's name; None for all ranks.
        tag: must be 0.
        recv_dtype: the dtype to receive if ``tensor`` is a shape; for a NumPy dtype, the message is a NumPy array.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if ``op`` is unknown.
        NotImplementedError: if ``tag`` is not 0.
    """

    def __init__(
        self,
        op: str | Callable[..., Any],
        tensor: Array | tuple[int, ...],
        peer: int,
        group: str | None = None,
        tag: int = 0,
        recv_dtype: Any = None,
    ) -> None:
        _require(op, tensor, peer, tag)
        self.op = op
        self.tensor = tensor
        self.peer = peer
        self.group = group
        self.tag = tag
        self.recv_dtype = recv_dtype


def batch_isend_irecv(p2p_op_list: list[P2POp]) -> tuple[Array, ...]:
    """Post every send and receive of the list, in its order, and wait for them.

    Args:
        p2p_op_list: the sends and receives, one P2POp each.

    Returns:
        One tensor per P2POp: for "irecv", the message; for "isend", a placeholder of shape ``()`` with a meaningless
        value.

    Raises:
        TypeError: if ``p2p_op_list`` is not a list, or is empty.
        AttributeError: if an entry is not a P2POp ("... object has no attribute 'group'").
        ValueError: if an "irecv" has a shape but no ``recv_dtype``.
        KeyError: if a peer is not in the group.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    if not isinstance(p2p_op_list, list):
        refuse(TypeError, f"p2p_op_list must be type of list, but got type of {p2p_op_list}.")
    if not p2p_op_list:
        refuse(TypeError, "p2p_op_list can not be empty list.")
    for index, operation in enumerate(p2p_op_list):
        _require_operation(index, operation)
    arrays = [_array_of(operation) for operation in p2p_op_list]
    outputs_and_handles = [_post(operation, tensor) for operation, tensor in zip(p2p_op_list, arrays, strict=True)]
    for _, handle in outputs_and_handles:
        handle.wait()
    return tuple(output for output, _ in outputs_and_handles)


def _name(op: str | Callable[..., Any]) -> str:
    return op if isinstance(op, str) else str(getattr(op, "__name__", op))


def _require(op: object, tensor: object, peer: object, tag: int) -> None:
    if not (isinstance(op, str) or callable(op)):
        refuse(TypeError, f"op must be type of string or function, but got type of {type(op)}")
    if _name(op) not in ("isend", "irecv"):
        refuse(ValueError, f"Expected ``op`` to be of type ``isend`` or `irecv``, but got {_name(op)}")
    if not (is_array(tensor) or isinstance(tensor, tuple)):
        refuse(TypeError, f"Expected ``tensor`` to be type of tuple or Tensor, but got {type(tensor)}.")
    if not isinstance(peer, int):
        refuse(TypeError, f"peer must be type of int, but got type of {type(peer)}")
    if tag != 0:
        refuse(NotImplementedError, "``tag`` not support yet.")


def _require_operation(index: int, operation: P2POp) -> None:
    """Refuse an entry that cannot be posted, before any entry is posted."""
    if not hasattr(operation, "group"):
        refuse(AttributeError, f"{type(operation).__name__!r} object has no attribute 'group'")
    members = group_or_world(operation.group)
    peer_in(members, operation.peer)
    if not isinstance(operation.tensor, tuple):
        require_dense(members.communicator, "batch_isend_irecv", operation.tensor)
        return
    if _name(operation.op) == "isend":
        refuse(
            TypeError,
            f"tensor of {index}th P2POp in p2p_op_list is a tuple, but an isend needs a tensor to send.",
        )
    if operation.recv_dtype is None:
        refuse(
            ValueError,
            f"'recv_dtype' of {index}th P2POp in p2p_op_list is None but op_types is'irecv' and P2POp.tensor is "
            "a tuple type.",
        )


def _array_of(operation: P2POp) -> Array:
    """Return the array to send, or an array like the one to receive."""
    if not isinstance(operation.tensor, tuple):
        return operation.tensor
    if isinstance(operation.recv_dtype, torch.dtype):
        return torch.empty(operation.tensor, dtype=operation.recv_dtype)
    return np.empty(operation.tensor, dtype=operation.recv_dtype)


def _post(operation: P2POp, tensor: Array) -> tuple[Array, CommHandle]:
    group = group_or_world(operation.group).name
    if _name(operation.op) == "irecv":
        return irecv(tensor, operation.peer, group)
    placeholder = as_torch(tensor).detach().new_zeros(())
    return in_kind_of(tensor, placeholder), isend(tensor, operation.peer, group)
