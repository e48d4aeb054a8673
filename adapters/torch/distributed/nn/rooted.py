"""broadcast, gather, scatter, reduce: between one rank and the others, differentiable. Conventions of torch 2.13.0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch.distributed import ReduceOp

from collshim.arrays import Array
from collshim.torch.distributed.arguments import arrays_of, reduction, require_tensor, same_dtype
from collshim.torch.distributed.membership import Group, warn_outside
from collshim.torch.distributed.nn.calls import (
    each,
    group_and_root,
    result_of,
    warn_deprecated,
    warn_outside_and_return,
)
from collshim.torch.distributed.nn.graph import connect_inputs, result_off_root
from collshim.torch.distributed.posting import submit
from collshim.torch.distributed.work import complete


def broadcast(tensor: Array, src: int, group: Group = None) -> Array:
    """Return a copy of the source's tensor on every rank; on other ranks, ``tensor`` only specifies shape and dtype.

    Args:
        tensor: an array with the same shape and dtype on every rank.
        src: the source's global rank.
        group: the group of ranks that take part; None for all ranks.

    Raises:
        TypeError: ``tensor`` is not an array.
        ValueError: the source is not in the group; the default group is not initialized.
        RuntimeError: the ranks' calls disagree, or a rank is missing.

    >>> broadcast(x, 0).sum().backward()  # two ranks  # doctest: +SKIP
    >>> x.grad  # 2 on rank 0, whose x both losses depend on; 0 on rank 1  # doctest: +SKIP
    """
    warn_deprecated("broadcast")
    process_group, root = group_and_root(group, src)
    require_tensor("tensor", tensor)
    if process_group is None:
        return warn_outside_and_return("broadcast", tensor)
    result = result_of(process_group, lambda comm: comm.broadcast(tensor, root))
    return result if root == process_group.rank() else connect_inputs(result, [tensor])


def gather(tensor: Array, dst: int = 0, group: Group = None) -> tuple[Array, ...]:
    """Gather all ranks' tensors; return them on the destination, in the group's order, and zeros elsewhere.

    Args:
        tensor: an array with the same shape and dtype on every rank.
        dst: the destination's global rank.
        group: the group of ranks that take part; None for all ranks.

    Raises:
        TypeError, ValueError, RuntimeError: as for ``broadcast``.
    """
    process_group, root = group_and_root(group, dst)
    require_tensor("tensor", tensor)
    if process_group is None:
        warn_outside("gather")
        return ()
    work = submit(process_group, lambda comm: comm.gather(tensor, root).then(each))
    result = complete(work, process_group.deadline, None, process_group.order)
    if result is not None:
        return tuple(result)
    return tuple(result_off_root(tensor, work.token, zeros=True) for _ in range(process_group.size()))


def scatter(tensors: Sequence[Array] | None, src: int = 0, group: Group = None) -> Array:
    """Return a copy of the source's ``tensors[r]`` on rank r.

    Args:
        tensors: on the source, one array per rank. On the other ranks, None if calls are checked, as torch documents,
            otherwise arrays of the expected shape and dtype, as torch requires.
        src: the source's global rank.
        group: the group of ranks that take part; None for all ranks.

    Raises:
        TypeError, ValueError, RuntimeError: as for ``broadcast``; the source has no list.
    """
    process_group, root = group_and_root(group, src)
    parts = arrays_of("tensors", [] if tensors is None else tensors)
    same_dtype(parts)
    if process_group is None:
        return warn_outside_and_return("scatter", *parts)
    if root == process_group.rank():
        return result_of(process_group, lambda comm: comm.scatter(parts, root))
    example = parts[min(process_group.rank(), len(parts) - 1)] if parts else None
    return connect_inputs(result_of(process_group, lambda comm: comm.scatter(None, root, like=example)), parts)


def reduce(tensor: Array, dst: int, op: Any = ReduceOp.SUM, group: Group = None) -> Array:
    """Reduce all ranks' tensors; return the result on the destination, and a copy of the rank's own tensor elsewhere.

    Args:
        tensor: an array with the same shape and dtype on every rank; it does not change.
        dst: the destination's global rank.
        op: a ReduceOp.
        group: the group of ranks that take part; None for all ranks.

    Raises:
        TypeError, ValueError, RuntimeError: as for ``all_reduce``.
    """
    process_group, root = group_and_root(group, dst)
    require_tensor("tensor", tensor)
    if process_group is None:
        return warn_outside_and_return("reduce", tensor)
    reduce_op = reduction(op)
    work = submit(process_group, lambda comm: comm.reduce(tensor, root, reduce_op))
    result = complete(work, process_group.deadline, None, process_group.order)
    return result if root == process_group.rank() else result_off_root(tensor, work.token)
