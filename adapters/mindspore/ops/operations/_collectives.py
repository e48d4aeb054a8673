"""AllReduce, AllGather, ReduceScatter, AlltoAll, Barrier: equal shapes. Conventions of MindSpore 2.10.0."""

from __future__ import annotations

import torch

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_torch
from collshim.layout import split
from collshim.mindspore.communication import comm_func
from collshim.mindspore.communication.comm_func.arguments import divided, require_tensor
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
    """Called, every rank of ``group`` gets the reduction of all ranks' tensors, in the shape of its own.

    Args:
        op: one of ``ReduceOp``.
        group: the group's name; looked up when called.

    Raises:
        TypeError: ``op`` or ``group`` is no string; called with no tensor.
        ValueError: called with an unknown ``op``.
        RuntimeError: this rank knows no such group.
    """

    def __init__(self, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__("AllReduce", op, group)

    def __call__(self, input_x: Array) -> Array:
        """The reduction."""
        require_tensor("AllReduce", input_x)
        own = as_torch(input_x)
        return in_kind_of(input_x, self.members.communicator.all_reduce(own, self.operation).wait())


class AllGather(Collective):
    """Called, every rank of ``group`` gets all tensors, ``(x1, ...)`` each, as ``(N * x1, ...)``; 0-d ones as ``(N,)``.

    Raises:
        TypeError: ``group`` is no string; called with no tensor.
        RuntimeError: this rank knows no such group.
    """

    def __init__(self, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__("AllGather", group)

    def __call__(self, input_x: Array) -> Array:
        """All ranks' tensors, joined."""
        return comm_func.all_gather_into_tensor(input_x, self.attrs["group"])[0]


class ReduceScatter(Reducing):
    """Called, rank r of ``group`` gets the r-th part, ``(x1 / N, ...)``, of the reduction of all tensors.

    Raises:
        TypeError: ``op`` or ``group`` is no string; called with no tensor.
        ValueError: called with an unknown ``op``; N does not divide ``x1``.
        RuntimeError: this rank knows no such group.
    """

    def __init__(self, op: str = ReduceOp.SUM, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__("ReduceScatter", op, group)

    def __call__(self, input_x: Array) -> Array:
        """This rank's part of the reduction."""
        require_tensor("ReduceScatter", input_x)
        comm = self.members.communicator
        return in_kind_of(input_x, comm.reduce_scatter(divided(input_x, comm.size), self.operation).wait())


class AlltoAll(Collective):
    """Called, a tensor is cut along ``split_dim``; rank r gets every rank's r-th part, joined along ``concat_dim``.

    Args:
        split_count: how many parts: as many as the group has ranks.
        split_dim: the axis to cut, of a length that ``split_count`` divides.
        concat_dim: the axis to join along.
        group: the group's name; looked up when called.

    Raises:
        TypeError: an argument of another type.
        ValueError: when called: another ``split_count``, an axis that is not there, a length that cannot be cut.
        RuntimeError: this rank knows no such group.
    """

    def __init__(self, split_count: int, split_dim: int, concat_dim: int, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__("AlltoAll", group)
        for what, value in (("split_count", split_count), ("split_dim", split_dim), ("concat_dim", concat_dim)):
            require_type("AlltoAll", what, value, int)
            self.add_prim_attr(what, value)

    def __call__(self, input_x: Array) -> Array:
        """Every rank's part for this one, joined."""
        require_tensor("AlltoAll", input_x)
        comm, whole = self.members.communicator, as_torch(input_x)
        count, axis, into = (self.attrs[name] for name in ("split_count", "split_dim", "concat_dim"))
        if count != comm.size:
            refuse(
                ValueError, f"For 'AlltoAll', split_count must be the size of its group, {comm.size}, but got {count}"
            )
        for what, value in (("split_dim", axis), ("concat_dim", into)):
            if not -whole.dim() <= value < whole.dim():
                refuse(ValueError, f"For 'AlltoAll', {what} must be an axis of {tuple(whole.shape)}, but got {value}")
        if whole.shape[axis] % count:
            text = f"split_count {count} must divide the length {whole.shape[axis]} of axis {axis}"
            refuse(ValueError, f"For 'AlltoAll', {text}")
        parts = split(whole.movedim(axis, 0).contiguous(), count)
        received = comm.all_to_all(parts).wait()
        pieces = [part.movedim(0, axis) for part in received]
        return in_kind_of(input_x, torch.cat(pieces, into))


class Barrier(Collective):
    """Called, it returns when every rank of ``group`` has called.

    Raises:
        TypeError: ``group`` is no string.
        RuntimeError: this rank knows no such group.
    """

    def __init__(self, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__("Barrier", group)

    def __call__(self) -> None:
        """Wait for all."""
        self.members.communicator.barrier().wait()
