"""Exchanges of unequal parts from every rank to every rank. Conventions of MindSpore 2.10.0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.arrays import Array
from collshim.communicator import Communicator
from collshim.layout import cut
from collshim.mindspore.communication.comm_func.arguments import (
    group_or_world,
    require_dense,
    require_flag,
    require_tensor,
)
from collshim.mindspore.communication.comm_func.handle import CommHandle, output_and_handle
from collshim.mindspore.communication.comm_func.splits import (
    Shape,
    flat_output,
    join_rows,
    matrix_counts,
    pieces,
    require_one_per_rank,
    require_shapes,
    rows_of,
    sequence_of,
    shape_of,
    tensors_of,
)


def all_to_all_with_output_shape(
    output_shape_list: Sequence[Array | Shape],
    input_tensor_list: Sequence[Array],
    group: str | None = None,
    async_op: bool = False,
) -> tuple[tuple[Array, ...], CommHandle | None]:
    """Send the r-th tensor of every rank's list to rank r of ``group``, which returns the tensors.

    Args:
        output_shape_list: for each rank, the shape of the tensor from that rank: a tuple, or a tensor of that shape.
        input_tensor_list: for each rank, the tensor for that rank; shapes may differ, but dtypes may not.
        group: the group's name; None for all ranks.
        async_op: whether the call returns before the output is complete.

    Returns:
        ``(outputs, handle)``. ``outputs``: a tuple of one tensor per rank, in rank order, with the shapes of
        ``output_shape_list``. ``handle``: None, or a CommHandle with ``async_op``.

    Raises:
        TypeError: if a list is not a list or tuple, has entries of a wrong type, or does not have one entry per rank;
            if the inputs have several dtypes; if ``group`` is not a string.
        RuntimeError: if this rank is not initialised, the group does not exist, or a rank sends a different shape.
    """
    tensors = tensors_of(input_tensor_list)
    shapes = [shape_of(shape) for shape in sequence_of(output_shape_list)]
    comm = group_or_world(group).communicator
    for tensor in tensors:
        require_dense(comm, "all_to_all_with_output_shape", tensor)
    require_one_per_rank(comm, "input_tensor_list", tensors)
    require_one_per_rank(comm, "output_shape_list", shapes)
    return _exchange(comm, input_tensor_list[0], tensors, shapes, tuple, async_op)


def all_to_all_single_with_output_shape(
    output_shape: Array | Shape,
    tensor: Array,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> tuple[Array, CommHandle | None]:
    """Send the r-th part of every rank's tensor to rank r of ``group``, which returns the parts joined in rank order.

    Parts are cut and joined along the first dimension.

    Args:
        output_shape: the output's shape: a tuple, or a tensor of that shape.
        tensor: the tensor to divide and send; all dimensions except the first are the same on every rank.
        output_split_sizes: the number of rows from each rank; None for equal numbers.
        input_split_sizes: the number of rows to each rank; None for equal numbers.
        group: the group's name; None for all ranks.
        async_op: whether the call returns before the output is complete.

    Returns:
        ``(output, handle)``. ``output``: a tensor of ``output_shape``. ``handle``: None, or a CommHandle with
        ``async_op``.

    Raises:
        TypeError: if ``tensor`` is not a tensor, ``group`` not a string, or ``output_shape`` is a list ("unhashable
            type").
        ValueError: if N does not divide the first dimension ("input shape at dim 0 must be divided by world_size"), or
            the sizes are not one per rank or do not add up to the first dimension.
        RuntimeError: if this rank is not initialised, the group does not exist, or a rank sends a different number of
            rows.
    """
    require_tensor("all_to_all_single_with_output_shape", tensor)
    shape = shape_of(output_shape)
    comm = group_or_world(group).communicator
    whole = require_dense(comm, "all_to_all_single_with_output_shape", tensor)
    input_rows = rows_of(comm, "input", tuple(whole.shape), input_split_sizes)
    output_rows = rows_of(comm, "output", shape, output_split_sizes)
    shapes = [(rows, *shape[1:]) for rows in output_rows]
    return _exchange(comm, tensor, list(whole.split(input_rows)), shapes, join_rows, async_op)


def all_to_all_v_c(
    output: Array,
    input: Array,
    send_count_matrix: Sequence[int],
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Write the elements that every rank of ``group`` sends to this rank into ``output``, in rank order.

    Every rank passes all counts. No gradient flows through this function.

    Args:
        output: a contiguous tensor with as many elements as this rank receives, which is written in row-major order.
        input: a tensor with as many elements as this rank sends, which is read in row-major order.
        send_count_matrix: N * N counts for N ranks: ``send_count_matrix[i * N + j]`` elements go from rank i
            to rank j.
        group: the group's name; None for all ranks.
        async_op: whether the call returns before the output is complete.

    Returns:
        None, or a CommHandle with ``async_op``.

    Raises:
        TypeError: if ``input`` or ``output`` is not a tensor, ``send_count_matrix`` not a list of ints, ``group`` not a
            string.
        ValueError: if there are not N * N counts, one is negative, or they do not fit ``input`` or ``output``.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    require_tensor("all_to_all_v_c", input)
    require_tensor("all_to_all_v_c", output)
    require_flag(async_op)
    comm = group_or_world(group).communicator
    input_counts, output_counts = matrix_counts(comm, send_count_matrix)
    source = require_dense(comm, "all_to_all_v_c", input)
    parts = pieces("input", source.detach().reshape(-1), input_counts)
    work = comm.all_to_all(parts, out=pieces("output", flat_output(output), output_counts))
    if async_op:
        return CommHandle(work)
    work.wait()
    return None


def _exchange(
    comm: Communicator,
    array: Array,
    parts: list[Tensor],
    shapes: list[Shape],
    form: Callable[[Sequence[Tensor]], Any],
    async_op: bool,
) -> tuple[Any, CommHandle | None]:
    """Post ``parts``; the outputs have ``shapes``, are in one block of memory, and are returned through ``form``."""
    counts = [torch.Size(shape).numel() for shape in shapes]
    return output_and_handle(
        array,
        parts,
        lambda out: comm.all_to_all(parts, out=out, discovers=out is None),
        lambda: cut(parts[0].new_empty(sum(counts)), shapes),
        lambda outputs: form(require_shapes(comm, outputs, shapes)),
        async_op=async_op,
        fixed_shapes=True,
    )
