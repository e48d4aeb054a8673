"""all_gather_into_tensor, all_reduce, reduce_scatter_tensor, barrier.

Conventions of MindSpore 2.10.0.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_torch
from collshim.layout import concatenated
from collshim.mindspore.communication.comm_func.arguments import divide, require_group, require_tensor
from collshim.mindspore.communication.comm_func.handle import CommHandle, output_and_handle
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP
from collshim.settings import of_adapter

_OPS = ("sum", "prod", "min", "max")


def all_gather_into_tensor(
    tensor: Array, group: str = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> tuple[Array, CommHandle | None]:
    """Return all tensors of ``group`` on every rank, joined along the first dimension in rank order.

    The reference manual's formula, ``(N, x1, x2, ...)``, is not what MindSpore returns: its example and its
    implementation return ``(N * x1, x2, ...)``, and so does this function. For the stacked form of the formula, use
    ``collshim.options(mindspore_gather="stacked")`` or set COLLSHIM_MINDSPORE_GATHER=stacked.

    Args:
        tensor: a tensor of shape ``(x1, x2, ...)``, with the same shape and dtype on every rank.
        group: the group's name.
        async_op: whether the call returns before the output is complete.

    Returns:
        ``(output, handle)``. ``output``: ``(N * x1, x2, ...)`` for N ranks; ``(N,)`` for 0-d tensors; stacked: ``(N,
        x1, x2, ...)``. ``handle``: None, or, with ``async_op``, a CommHandle after whose ``wait`` the output is
        complete.

    Raises:
        TypeError: if ``tensor`` is not a tensor, or ``group`` not a string (None included).
        RuntimeError: if this rank is not initialised or has no such group.

    >>> # two ranks
    >>> output, handle = all_gather_into_tensor(Tensor(np.ones([2, 8]).astype(np.float32)))  # doctest: +SKIP
    >>> output.shape, handle  # doctest: +SKIP
    (torch.Size([4, 8]), None)
    """
    require_tensor("all_gather_into_tensor", tensor)
    comm, own = require_group(group).communicator, as_torch(tensor)
    return output_and_handle(
        tensor,
        [own],
        lambda out: comm.all_gather(own, out=out),
        lambda: own.new_empty((comm.size, *own.shape)),
        _gathered_form(),
        async_op=async_op,
    )


def all_reduce(
    tensor: Array, op: str = "sum", group: str = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> tuple[Array, CommHandle | None]:
    """Return the reduction of all tensors of ``group`` on every rank; ``tensor`` does not change.

    Args:
        tensor: a tensor with the same shape and dtype on every rank.
        op: "sum", "prod", "min" or "max".
        group: the group's name.
        async_op: whether the call returns before the output is complete.

    Returns:
        ``(output, handle)``. ``output``: a tensor with the shape of ``tensor``. ``handle``: None, or a CommHandle with
        ``async_op``.

    Raises:
        TypeError: if ``tensor`` is not a tensor, ``op`` not one of the four, or ``group`` not a string.
        RuntimeError: if this rank is not initialised or has no such group.
    """
    require_tensor("all_reduce", tensor)
    _require_op("all_reduce", op)
    if op not in _OPS:
        refuse(
            TypeError,
            f"For all_reduce, the input op value must be one of sum, prod, min, max, but got {op!r}",
        )
    return reduce_to_all(tensor, op, group, async_op)


def reduce_to_all(tensor: Array, op: str, group: str, async_op: bool) -> tuple[Array, CommHandle | None]:
    """Return the reduction of all ranks' tensors, which may be the mean, and a handle; see ``all_reduce``."""
    comm, own = require_group(group).communicator, as_torch(tensor)
    return output_and_handle(
        tensor,
        [own],
        lambda out: comm.all_reduce(own, op, out=out),
        lambda: own.new_empty(own.shape),
        _identity,
        async_op=async_op,
    )


def reduce_scatter_tensor(
    tensor: Array, op: str = "sum", group: str = HCCL_WORLD_COMM_GROUP, async_op: bool = False
) -> tuple[Array, CommHandle | None]:
    """Reduce all tensors of ``group``, and return the r-th part of the result on rank r.

    Parts are cut along the first dimension; ``tensor`` does not change.

    Args:
        tensor: a tensor of shape ``(x1, x2, ...)``, with the same shape and dtype on every rank; ``x1`` is divisible by
            the number of ranks N.
        op: the name of the reduction: any that the engine supports.
        group: the group's name.
        async_op: whether the call returns before the output is complete.

    Returns:
        ``(output, handle)``. ``output``: ``(x1 / N, x2, ...)``. ``handle``: None, or a CommHandle with ``async_op``.

    Raises:
        TypeError: if ``tensor`` is not a tensor, or ``op`` or ``group`` not a string.
        ValueError: if ``x1`` is not divisible by N, or ``op`` is unknown.
        RuntimeError: if this rank is not initialised or has no such group.
    """
    require_tensor("reduce_scatter_tensor", tensor)
    _require_op("reduce_scatter_tensor", op)
    comm = require_group(group).communicator
    parts = divide(tensor, comm.size)
    return output_and_handle(
        tensor,
        [parts],
        lambda out: comm.reduce_scatter(parts, op, out=out),
        lambda: parts.new_empty(parts.shape[1:]),
        _identity,
        async_op=async_op,
    )


def barrier(group: str = HCCL_WORLD_COMM_GROUP) -> None:
    """Wait until every rank of ``group`` has called this.

    Raises:
        TypeError: if ``group`` is not a string.
        RuntimeError: if this rank is not initialised or has no such group.
    """
    if not isinstance(group, str):
        refuse(TypeError, f"group must be type of string, but got {type(group)}")
    require_group(group).communicator.barrier().wait()


def _require_op(function: str, op: object) -> None:
    if not isinstance(op, str):
        refuse(TypeError, f"For {function}, the input op type must be str, but got {type(op)}")


def _gathered_form() -> Callable[[Tensor], Tensor]:
    return _identity if of_adapter("mindspore_gather") == "stacked" else concatenated


def _identity(output: Tensor) -> Tensor:
    return output
