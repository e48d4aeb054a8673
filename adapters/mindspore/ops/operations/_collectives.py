"""AllReduce, AllGather, ReduceScatter, AlltoAll, Barrier: for equal shapes. Conventions of MindSpore 2.10.0."""

from __future__ import annotations

import torch

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_torch
from collshim.layout import split
from collshim.mindspore.communication import comm_func
from collshim.mindspore.communication.comm_func.arguments import divide, require_tensor
from collshim.mindspore.communication.comm_func.handle import in_kind_of
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP
from collshim.mindspore.ops.operations._arguments import Collective, Reducing, require_type

__all__ = ["AllGather", "AllReduce", "AlltoAll", "Barrier", "ReduceOp", "ReduceScatter"]


class ReduceOp:
    """The names of the reductions."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    PROD = "prod"
    AVG = "avg"


class AllReduce(Reducing):
    """A primitive that returns the reduction of all ranks' tensors on every rank of ``group``.

    Args:
        op: one of ``ReduceOp``.
        group: the group's name, which is looked up in each call.

    Raises:
        TypeError: ``op`` or ``group`` is not a string; in a call, the input is not a tensor.
        ValueError: in a call, ``op`` is unknown.
        RuntimeError: this rank has no such group.
    """

    _depends_on_size = False

    def __init__(self, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__("AllReduce", op, group)

    def __call__(self, input_x: Array) -> Array:
        """Return the reduction."""
        require_tensor("AllReduce", input_x)
        own = as_torch(input_x)
        return in_kind_of(input_x, self.members.communicator.all_reduce(own, self.operation).wait())


class AllGather(Collective):
    """A primitive that returns all ranks' tensors, ``(x1, ...)``, joined in rank order, on every rank of ``group``.

    The result has the shape ``(N * x1, ...)`` for N ranks; ``(N,)`` for 0-d tensors.

    Raises:
        TypeError: ``group`` is not a string; in a call, the input is not a tensor.
        RuntimeError: this rank has no such group.
    """

    def __init__(self, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__("AllGather", group)

    def __call__(self, input_x: Array) -> Array:
        """Return all ranks' tensors, joined."""
        return comm_func.all_gather_into_tensor(input_x, self.attrs["group"])[0]


class ReduceScatter(Reducing):
    """A primitive that returns the r-th part, ``(x1 / N, ...)``, of the reduced tensors on rank r of ``group``.

    Raises:
        TypeError: ``op`` or ``group`` is not a string; in a call, the input is not a tensor.
        ValueError: in a call, ``op`` is unknown; N does not divide ``x1``.
        RuntimeError: this rank has no such group.
    """

    def __init__(self, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__("ReduceScatter", op, group)

    def __call__(self, input_x: Array) -> Array:
        """Return this rank's part of the reduction."""
        require_tensor("ReduceScatter", input_x)
        comm = self.members.communicator
        return in_kind_of(input_x, comm.reduce_scatter(divide(input_x, comm.size), self.operation).wait())


class AlltoAll(Collective):
    """A primitive that returns, on rank r, the r-th part of every rank's tensor, joined along ``concat_dim``.

    Args:
        split_count: the number of parts, which must be the number of ranks in the group.
        split_dim: the axis to cut; ``split_count`` must divide its length.
        concat_dim: the axis along which to join the parts.
        group: the group's name, which is looked up in each call.

    Raises:
        TypeError: an argument has the wrong type.
        IndexError: in a call, an axis does not exist.
        ValueError: in a call, ``split_count`` is not the number of ranks, or does not divide the axis's length.
        RuntimeError: this rank has no such group.
    """

    def __init__(self, split_count: int, split_dim: int, concat_dim: int, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__("AlltoAll", group)
        for what, value in (("split_count", split_count), ("split_dim", split_dim), ("concat_dim", concat_dim)):
            require_type("AlltoAll", what, value, int)
            self.add_prim_attr(what, value)

    def __call__(self, input_x: Array) -> Array:
        """Return every rank's part for this rank, joined."""
        require_tensor("AlltoAll", input_x)
        comm, whole = self.members.communicator, as_torch(input_x)
        count, axis, into = (self.attrs[name] for name in ("split_count", "split_dim", "concat_dim"))
        if count != comm.size:
            refuse(
                ValueError, f"For 'AlltoAll', split_count must be the size of its group, {comm.size}, but got {count}"
            )
        for what, value in (("split_dim", axis), ("concat_dim", into)):
            if not -whole.dim() <= value < whole.dim():
                refuse(IndexError, f"For 'AlltoAll', {what} must be an axis of {tuple(whole.shape)}, but got {value}")
        if whole.shape[axis] % count:
            text = f"split_count {count} must divide the length {whole.shape[axis]} of axis {axis}"
            refuse(ValueError, f"For 'AlltoAll', {text}")
        parts = split(whole.movedim(axis, 0).contiguous(), count)
        received = comm.all_to_all(parts).wait()
        pieces = [part.movedim(0, axis) for part in received]
        return in_kind_of(input_x, torch.cat(pieces, into))


class Barrier(Collective):
    """A primitive that waits until every rank of ``group`` has called it.

    Raises:
        TypeError: ``group`` is not a string.
        RuntimeError: this rank has no such group.
    """

    _depends_on_size = False
    _wrong_count = TypeError

    def __init__(self, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__("Barrier", group)

    def __call__(self) -> None:
        """Wait for all ranks."""
        self.members.communicator.barrier().wait()
