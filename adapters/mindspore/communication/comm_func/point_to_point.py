"""send, recv, isend, irecv. Conventions of MindSpore 2.10.0. ``src`` and ``dst`` are global ranks.

Messages carry no gradient, because a send has no output through which its rank could take part in a backward.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from collshim.arrays import Array, as_torch
from collshim.mindspore.communication.comm_func.arguments import (
    group_of_peer,
    peer_in,
    require_dense,
    require_rank,
    require_tensor,
)
from collshim.mindspore.communication.comm_func.handle import CommHandle, attach_work, in_kind_of
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP
from collshim.work import Work


def send(tensor: Array, dst: int = 0, group: str = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> None:
    """Send ``tensor`` to rank ``dst``, whose next ``recv`` from this rank, in ``group`` and with ``tag``, receives it.

    Raises:
        TypeError: if ``tensor`` is not a tensor, or ``dst`` not an int.
        KeyError: if the group does not exist, or ``dst`` is not in it.
        RuntimeError: if this rank is not initialised.
    """
    _post_send("send", tensor, dst, group, tag).wait()


def recv(tensor: Array, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> Array:
    """Return the next message from rank ``src`` to this rank, in ``group`` and with ``tag``.

    ``tensor`` does not change.

    Args:
        tensor: a tensor with the shape and dtype of the message.
        src: the source's global rank.
        group: the group's name.
        tag: the tag of the ``send``.

    Returns:
        The output, with the shape and dtype of ``tensor``.

    Raises:
        TypeError: if ``tensor`` is not a tensor, or ``src`` not an int.
        KeyError: if the group does not exist, or ``src`` is not in it.
        RuntimeError: if this rank is not initialised, or the message has a different shape or dtype.
    """
    output, handle = irecv_for("recv", tensor, src, group, tag)
    handle.wait()
    return output


def isend(tensor: Array, dst: int = 0, group: str = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> CommHandle:
    """Post a ``send`` and return at once; ``tensor`` may be changed after the handle's ``wait``."""
    return CommHandle(_post_send("isend", tensor, dst, group, tag))


def irecv(tensor: Array, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> tuple[Array, CommHandle]:
    """Post a ``recv`` and return ``(output, handle)`` at once; ``output`` is complete after the handle's ``wait``."""
    return irecv_for("irecv", tensor, src, group, tag)


def irecv_for(function: str, tensor: Array, src: int, group: str, tag: int) -> tuple[Array, CommHandle]:
    """Run ``irecv`` with errors that name ``function``."""
    require_tensor(function, tensor)
    require_rank(function, "src", src)
    members = group_of_peer(group, src)
    output = _empty_like(require_dense(members.communicator, function, tensor))
    work = members.communicator.recv(peer_in(members, src), out=output, tag=tag)
    return attach_work(in_kind_of(tensor, output), work), CommHandle(work)


def _post_send(function: str, tensor: Array, dst: int, group: str, tag: int) -> Work[Any]:
    require_tensor(function, tensor)
    require_rank(function, "dst", dst)
    members = group_of_peer(group, dst)
    return members.communicator.send(as_torch(tensor).detach(), peer_in(members, dst), tag=tag)


def _empty_like(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format, requires_grad=False)
