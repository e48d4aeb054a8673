"""send, recv, isend, irecv. Conventions of MindSpore 2.10.0. ``src`` and ``dst`` are global ranks.

No gradient travels with a message: a send has no output through which its rank could join a backward.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from collshim.arrays import Array, as_torch
from collshim.mindspore.communication.comm_func.arguments import (
    dense,
    peer_in,
    require_group,
    require_rank,
    require_tensor,
)
from collshim.mindspore.communication.comm_func.handle import CommHandle, awaited, in_kind_of
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP
from collshim.work import Work


def send(tensor: Array, dst: int = 0, group: str = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> None:
    """Rank ``dst``'s next ``recv`` from this rank, in ``group`` and with ``tag``, gets ``tensor``.

    Raises:
        TypeError: ``tensor`` is no tensor, ``dst`` no int, or ``group`` no string.
        KeyError: ``dst`` is not in ``group``.
        RuntimeError: not initialised, or no such group.
    """
    _sent("send", tensor, dst, group, tag).wait()


def recv(tensor: Array, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> Array:
    """This rank gets what rank ``src`` sends to it next, in ``group`` and with ``tag``.

    ``tensor`` is unchanged.

    Args:
        tensor: gives shape and dtype of what comes.
        src: the global rank that sends.
        group: the group's name.
        tag: that of the ``send``.

    Returns:
        The output, in the shape and dtype of ``tensor``.

    Raises:
        TypeError: ``tensor`` is no tensor, ``src`` no int, or ``group`` no string.
        KeyError: ``src`` is not in ``group``.
        RuntimeError: not initialised, no such group; or what comes has another shape or dtype.
    """
    output, handle = irecv_for("recv", tensor, src, group, tag)
    handle.wait()
    return output


def isend(tensor: Array, dst: int = 0, group: str = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> CommHandle:
    """As ``send``, and returns at once: ``tensor`` may be changed after the handle's ``wait``."""
    return CommHandle(_sent("isend", tensor, dst, group, tag))


def irecv(tensor: Array, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP, tag: int = 0) -> tuple[Array, CommHandle]:
    """As ``recv``, and returns ``(output, handle)`` at once; ``output`` is complete after the handle's ``wait``."""
    return irecv_for("irecv", tensor, src, group, tag)


def irecv_for(function: str, tensor: Array, src: int, group: str, tag: int) -> tuple[Array, CommHandle]:
    """``irecv``, whose errors name ``function``."""
    require_tensor(function, tensor)
    require_rank(function, "src", src)
    members = require_group(group)
    output = _empty_like(dense(members.communicator, function, tensor))
    work = members.communicator.recv(peer_in(members, src), out=output, tag=tag)
    return awaited(in_kind_of(tensor, output), work), CommHandle(work)


def _sent(function: str, tensor: Array, dst: int, group: str, tag: int) -> Work[Any]:
    require_tensor(function, tensor)
    require_rank(function, "dst", dst)
    members = require_group(group)
    return members.communicator.send(as_torch(tensor).detach(), peer_in(members, dst), tag=tag)


def _empty_like(tensor: Tensor) -> Tensor:
    return torch.empty_like(tensor, memory_format=torch.contiguous_format, requires_grad=False)
