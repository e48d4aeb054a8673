"""Reductions over ranks: all_reduce, reduce, reduce_scatter, reduce_scatter_single, reduce_scatter_tensor.

Conventions of torch 2.13.0. Beyond gloo: AVG of integers (rounded towards zero, as NCCL does), PREMUL_SUM, int16, the
unsigned and eight-bit dtypes; ``reduce`` leaves the other ranks' tensors unchanged.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.distributed import ReduceOp

from collshim.arrays import Array
from collshim.calls.collective import ALL_REDUCE, REDUCE, REDUCE_SCATTER
from collshim.torch.distributed import collectives
from collshim.torch.distributed.arguments import (
    reduction,
    reduction_of,
    require_list,
    require_tensor,
    same_dtype,
    warn_renamed,
)
from collshim.torch.distributed.coalescing import post_or_hold
from collshim.torch.distributed.membership import Group, group_of, rank_in, warn_outside
from collshim.torch.distributed.overriding import overridable
from collshim.torch.distributed.posting import UNKNOWN, plain_list, post, repeat, unless_list
from collshim.torch.distributed.sparse import sum_sparse
from collshim.torch.distributed.work import Work


@overridable("tensor")
def all_reduce(tensor: Array, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False) -> Work | None:
    """Reduce all ranks' ``tensor`` in place, on every rank.

    Args:
        tensor: an array with the same shape and dtype on every rank; if ``op`` is SUM, it may be a sparse COO tensor.
        op: a ReduceOp: SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR, or PREMUL_SUM with its factor.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or with ``async_op`` a Work, whose ``wait()`` returns True when ``tensor`` holds the result. On a rank
        outside the group: None, with a UserWarning.

    Raises:
        TypeError: ``tensor`` is not an array, or ``op`` not a ReduceOp.
        ValueError: the default group is not initialized; ``op`` needs an order or bits, and the numbers are complex.
        RuntimeError: the ranks' calls disagree, or a rank is missing; the dtype does not support ``op``.

    >>> tensor = torch.arange(2, dtype=torch.int64) + 1 + 2 * rank  # two ranks: [1, 2] and [3, 4]  # doctest: +SKIP
    >>> dist.all_reduce(tensor)  # doctest: +SKIP
    >>> tensor  # on both  # doctest: +SKIP
    tensor([4, 6])
    """
    result: Work | None = repeat(group, async_op, tensor, ALL_REDUCE, tensor, tensor, op)
    if result is not UNKNOWN:
        return result
    require_tensor("tensor", tensor)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("all_reduce")
        return None
    if isinstance(tensor, Tensor) and tensor.layout is torch.sparse_coo:
        return post(process_group, async_op, "sparse_all_reduce", sum_sparse, (tensor, reduction(op)), [tensor])
    arguments = (tensor, reduction_of(op, tensor))
    return post_or_hold(process_group, async_op, "all_reduce", collectives.all_reduce, arguments, tensor, tensor)


@overridable("tensor")
def reduce(
    tensor: Array,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Group = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduce all ranks' ``tensor`` into the destination's tensor; the other ranks' tensors do not change.

    torch over gloo leaves partial sums in the other ranks' tensors.

    Args:
        tensor: an array with the same shape and dtype on every rank.
        dst, group_dst: the destination, as a global rank or as a rank in the group; pass exactly one of them.
        op: a ReduceOp, as for ``all_reduce``.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or a Work with ``async_op``. On a rank outside the group: None, with a UserWarning.

    Raises:
        TypeError, ValueError, RuntimeError: as for ``all_reduce``; both or neither of ``dst`` and ``group_dst`` are
            passed.
    """
    result: Work | None = repeat(group, async_op, tensor, REDUCE, tensor, tensor, op, (dst, group_dst))
    if result is not UNKNOWN:
        return result
    process_group = group_of(group)
    root = rank_in(process_group, dst, group_dst)
    require_tensor("tensor", tensor)
    if process_group is None:
        warn_outside("reduce")
        return None
    return post(process_group, async_op, "reduce", collectives.reduce, (tensor, root, reduction(op)), [tensor])


@overridable("output")
def reduce_scatter(
    output: Array, input_list: list[Array], op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Reduce all ranks' ``input_list[r]`` into rank r's ``output``.

    Args:
        output: an array with the shape of ``input_list[r]``.
        input_list: a list with one array per rank of the group; each has the same shape on every rank, but their shapes
            may differ from each other.
        op: a ReduceOp, as for ``all_reduce``.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or a Work with ``async_op``. On a rank outside the group: None, with a UserWarning.

    Raises:
        TypeError: ``output`` is not an array, or ``input_list`` not a list of arrays.
        ValueError: dtypes differ; the default group is not initialized.
        RuntimeError: the list's length or the output's shape does not fit; the ranks' calls disagree, or a rank is
            missing.
    """
    result: Work | None = repeat(group, async_op, output, REDUCE_SCATTER, plain_list(input_list), output, op)
    if result is not UNKNOWN:
        return result
    require_tensor("output", output)
    require_list("input_list", input_list)
    same_dtype(output, input_list)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("reduce_scatter")
        return None
    arguments = (output, input_list, reduction(op))
    return post(process_group, async_op, "reduce_scatter", collectives.reduce_scatter, arguments, [output], input_list)


@overridable("input")
def reduce_scatter_single(
    output: Array, input: Array, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Reduce the r-th part of all ranks' ``input`` into rank r's ``output``.

    Args:
        output: an array of the shape ``shape``.
        input: the parts end to end, ``(N * shape[0], *shape[1:])`` for N ranks, or stacked, ``(N, *shape)``; gloo
            accepts only the first form.
        op: a ReduceOp, as for ``all_reduce``.
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.

    Returns:
        None, or a Work with ``async_op``. On a rank outside the group: None, with a UserWarning.

    Raises:
        TypeError: an argument is not an array.
        ValueError: the default group is not initialized.
        RuntimeError: shapes or dtypes do not fit; the ranks' calls disagree, or a rank is missing.
    """
    result: Work | None = repeat(group, async_op, output, REDUCE_SCATTER, unless_list(input), output, op)
    if result is not UNKNOWN:
        return result
    require_tensor("output", output)
    require_tensor("input", input)
    process_group = group_of(group)
    if process_group is None:
        warn_outside("reduce_scatter_single")
        return None
    call, arguments = collectives.reduce_scatter_single, (output, input, reduction(op))
    return post_or_hold(process_group, async_op, "reduce_scatter_single", call, arguments, output, input)


def reduce_scatter_tensor(
    output: Array, input: Array, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Call ``reduce_scatter_single`` by its name up to torch 2.12, with torch 2.13's FutureWarning."""
    warn_renamed("reduce_scatter_tensor", "reduce_scatter_single")
    return reduce_scatter_single(output, input, op, group, async_op)


def _reduce_scatter_base(  # pyright: ignore[reportUnusedFunction]
    output: Array, input: Array, op: Any = ReduceOp.SUM, group: Group = None, async_op: bool = False
) -> Work | None:
    """Call ``reduce_scatter_single`` by its first name, with torch 2.13's FutureWarning."""
    warn_renamed("_reduce_scatter_base", "reduce_scatter_single")
    return reduce_scatter_single(output, input, op, group, async_op)
