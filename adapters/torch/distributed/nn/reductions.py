"""all_reduce and reduce_scatter, differentiable for every op that has a derivative. Conventions of torch 2.13.0."""

from __future__ import annotations

from typing import Any

from torch import Tensor
from torch.distributed import ReduceOp

from collshim.arrays import Array, as_torch
from collshim.communicator import Communicator
from collshim.torch.distributed.arguments import arrays_of, reduction, reduction_of, require_tensor, same_dtype
from collshim.torch.distributed.membership import Group, group_of, warn_outside
from collshim.torch.distributed.nn.calls import result_of, warn_deprecated, warn_outside_and_return
from collshim.torch.distributed.nn.graph import deliver, require_fit
from collshim.work import Work


def all_reduce(tensor: Array, op: Any = ReduceOp.SUM, group: Group = None) -> Array:
    """Reduce all ranks' tensors; return the result on every rank, with the same bits.

    Args:
        tensor: an array with the same shape and dtype on every rank; it does not change.
        op: a ReduceOp: SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, or PREMUL_SUM with its factor.
        group: the group of ranks that take part; None for all ranks.

    Raises:
        TypeError: ``tensor`` is not an array, or ``op`` not a ReduceOp.
        ValueError: the default group is not initialized; ``op`` needs an order or bits, and the numbers are complex.
        RuntimeError: the ranks' calls disagree, or a rank is missing; the dtype does not support ``op``.

    >>> all_reduce(x, ReduceOp.MAX).sum().backward()  # two ranks, rank 1 has the larger x  # doctest: +SKIP
    >>> x.grad  # 0 on rank 0; 2 on rank 1, whose x both losses depend on  # doctest: +SKIP
    """
    warn_deprecated("all_reduce")
    require_tensor("tensor", tensor)
    process_group = group_of(group)
    if process_group is None:
        return warn_outside_and_return("all_reduce", tensor)
    reduce_op = reduction_of(op, tensor)
    return result_of(process_group, lambda comm: comm.all_reduce(tensor, reduce_op))


def reduce_scatter(output: Array, input_list: list[Array], op: Any = ReduceOp.SUM, group: Group = None) -> Array:
    """Reduce all ranks' ``input_list[r]`` into ``output`` on rank r, and return it.

    Args:
        output: an array with the shape of ``input_list[r]``, which is written.
        input_list: one array per rank of the group; each has the same shape on every rank, but their shapes may differ
            from each other.
        op: a ReduceOp.
        group: the group of ranks that take part; None for all ranks.

    Returns:
        ``output``; if a gradient is needed, a new tensor over its memory, which belongs to the graph.

    Raises:
        TypeError, ValueError, RuntimeError: as for ``all_reduce``; the output or the list does not fit.
    """
    warn_deprecated("reduce_scatter", "reduce_scatter_single")
    process_group = group_of(group)
    require_tensor("output", output)
    inputs = arrays_of("input_list", input_list)
    same_dtype(output, inputs)
    if process_group is None:
        warn_outside("reduce_scatter")
        return output
    reduce_op = reduction(op)
    parts = [as_torch(part) for part in inputs]

    def call(comm: Communicator) -> Work[Tensor]:
        if len(parts) == comm.size:  # the engine refuses any other length
            require_fit("reduce_scatter: output", output, parts[comm.rank])
        return comm.reduce_scatter(parts, reduce_op)

    return deliver(output, result_of(process_group, call))
