"""Collectives with a root: broadcast, reduce, gather_into_tensor, scatter_tensor.

Conventions of MindSpore 2.10.0. ``src`` and ``dst`` are global ranks.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_torch
from collshim.layout import concatenated
from collshim.mindspore.communication.comm_func.arguments import (
    divide,
    require_group,
    require_rank,
    require_tensor,
    root_in,
)
from collshim.mindspore.communication.comm_func.handle import in_kind_of
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP
from collshim.work import Work


def broadcast(tensor: Array, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> Array:
    """Return rank ``src``'s tensor on every rank of ``group``; ``tensor`` does not change.

    On every rank, the gradient of ``tensor`` is the unchanged gradient of this rank's output, as MindSpore defines it.
    (The derivative of the sum of all ranks' losses would be the sum of these gradients on ``src``, and zero on the
    other ranks.)

    Args:
        tensor: a tensor with the same shape and dtype on every rank.
        src: the source's global rank.
        group: the group's name.

    Returns:
        The output, with the shape of ``tensor``.

    Raises:
        TypeError: if ``tensor`` is not a tensor, ``src`` not an int, or ``group`` not a string.
        RuntimeError: if this rank is not initialised, the group does not exist, or ``src`` is not in it.
    """
    require_tensor("broadcast", tensor)
    require_rank("broadcast", "src", src)
    members = require_group(group)
    own = as_torch(tensor)
    output = members.communicator.broadcast(own.detach(), root_in(members, src)).wait()
    if own.requires_grad and torch.is_grad_enabled():
        output = _OwnGradient.apply(own, output)  # type: ignore[no-untyped-call]
    return in_kind_of(tensor, output)


def reduce(tensor: Array, dst: int, op: str = "sum", group: str = HCCL_WORLD_COMM_GROUP) -> Array:
    """Return the reduction of all tensors of ``group`` on rank ``dst``, and a placeholder on the other ranks.

    ``tensor`` does not change.

    Args:
        tensor: a tensor with the same shape and dtype on every rank.
        dst: the destination's global rank.
        op: the name of the reduction: any that the engine supports.
        group: the group's name.

    Returns:
        On ``dst``, the output, with the shape of ``tensor``; on the other ranks, one element of shape ``(1,)`` with a
        meaningless value.

    Raises:
        TypeError: if ``tensor`` is not a tensor, ``dst`` not an int, or ``op`` or ``group`` not a string.
        ValueError: if ``op`` is unknown.
        RuntimeError: if this rank is not initialised, the group does not exist, or ``dst`` is not in it.
    """
    require_tensor("reduce", tensor)
    require_rank("reduce", "dst", dst)
    if not isinstance(op, str):
        refuse(TypeError, f"For 'Reduce', the type of 'op' should be 'str', but got type {type(op).__name__!r}.")
    members = require_group(group)
    return _on_root(tensor, members.communicator.reduce(as_torch(tensor), root_in(members, dst), op))


def gather_into_tensor(tensor: Array, dst: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> Array:
    """Return all tensors of ``group``, joined along the first dimension, on rank ``dst``, and a placeholder elsewhere.

    Args:
        tensor: a tensor of shape ``(x1, x2, ...)``, with the same shape and dtype on every rank.
        dst: the destination's global rank.
        group: the group's name.

    Returns:
        On ``dst``, the output, ``(N * x1, x2, ...)`` for N ranks; on the other ranks, one element of shape ``(1,)``
        with a meaningless value.

    Raises:
        TypeError: if ``tensor`` is not a tensor, ``dst`` not an int, or ``group`` not a string.
        RuntimeError: if this rank is not initialised, the group does not exist, or ``dst`` is not in it.
    """
    require_tensor("gather_into_tensor", tensor)
    require_rank("gather_into_tensor", "dst", dst)
    members = require_group(group)
    return _on_root(tensor, members.communicator.gather(as_torch(tensor), root_in(members, dst)).then(_join))


def scatter_tensor(tensor: Array, src: int = 0, group: str = HCCL_WORLD_COMM_GROUP) -> Array:
    """Cut rank ``src``'s tensor along the first dimension, and return the r-th part on rank r of ``group``.

    Args:
        tensor: a tensor of shape ``(x1, x2, ...)`` on every rank, with ``x1`` divisible by the number of ranks N; only
            ``src``'s values are used.
        src: the source's global rank.
        group: the group's name.

    Returns:
        The output, ``(x1 / N, x2, ...)``.

    Raises:
        TypeError: if ``tensor`` is not a tensor, ``src`` not an int, or ``group`` not a string.
        ValueError: if ``x1`` is not divisible by N.
        RuntimeError: if this rank is not initialised, the group does not exist, or ``src`` is not in it.
    """
    require_tensor("scatter_tensor", tensor)
    require_rank("scatter_tensor", "src", src)
    members = require_group(group)
    comm, root = members.communicator, root_in(members, src)
    parts = divide(tensor, comm.size)
    source = parts if comm.rank == root else None
    return in_kind_of(tensor, comm.scatter(source, root, like=parts[0].detach()).wait())


class _OwnGradient(torch.autograd.Function):
    """The output, whose gradient becomes that of this rank's own input."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, output: Tensor) -> Tensor:
        return output.view_as(output)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0], None


def _on_root(tensor: Array, work: Work[Tensor | None]) -> Array:
    """Return the root's result, or, on other ranks, a placeholder through which they take part in the backward pass."""
    result = work.wait()
    if result is None:
        result = as_torch(tensor).detach().new_zeros(1)
        result = result if work.token is None else result + work.token
    return in_kind_of(tensor, result)


def _join(stacked: Tensor | None) -> Tensor | None:
    return None if stacked is None else concatenated(stacked)
