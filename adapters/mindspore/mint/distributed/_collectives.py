"""Collectives of whole tensors, written in place. Conventions of MindSpore 2.10.0. Roots are global ranks.

The functions return None, or a handle with ``async_op``. No gradient flows through them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_output
from collshim.mindspore.communication.comm_func import all_to_all_v_c as _all_to_all_v_c
from collshim.mindspore.communication.comm_func.arguments import divide, require_dense, root_in
from collshim.mindspore.communication.comm_func.handle import CommHandle
from collshim.mindspore.communication.comm_func.splits import rows_of
from collshim.mindspore.mint.distributed._arguments import (
    finish,
    group_of,
    memory,
    require_dtype,
    require_flag,
    require_op,
    require_rank,
)


def all_reduce(tensor: Array, op: str = "sum", group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Reduce all ranks' ``tensor`` in place, on every rank; ``op`` is "sum", "prod", "min", "max" or "avg".

    Raises:
        TypeError: if ``tensor`` is not a tensor, ``op`` not a reduction, ``group`` not a string, or ``async_op`` not a
            bool.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    own = memory("all_reduce", tensor)
    require_op("all_reduce", op)
    require_flag(async_op)
    return finish(group_of(group).communicator.all_reduce(own, op, out=own), async_op, tensor)


def reduce(
    tensor: Array, dst: int, op: str = "sum", group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Reduce all ranks' tensors into rank ``dst``'s ``tensor``; the other ranks' tensors do not change.

    Raises:
        TypeError: if ``tensor`` is not a tensor, ``dst`` not an int, ``op`` not a reduction, ``group`` not a string, or
            ``async_op`` not a bool.
        RuntimeError: if this rank is not initialised, the group does not exist, or ``dst`` is not in it.
    """
    own = memory("reduce", tensor)
    require_rank("reduce", "dst", dst)
    require_op("reduce", op)
    require_flag(async_op)
    members = group_of(group)
    return finish(members.communicator.reduce(own, root_in(members, dst), op, out=own), async_op, tensor)


def broadcast(tensor: Array, src: int, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Copy rank ``src``'s ``tensor`` to every rank's ``tensor``.

    Raises:
        TypeError: if ``tensor`` is not a tensor, ``src`` not an int, ``group`` not a string, or ``async_op`` not a
            bool.
        RuntimeError: if this rank is not initialised, the group does not exist, or ``src`` is not in it.
    """
    own = memory("broadcast", tensor)
    require_rank("broadcast", "src", src)
    require_flag(async_op)
    members = group_of(group)
    return finish(members.communicator.broadcast(own, root_in(members, src), out=own), async_op, tensor)


def all_gather_into_tensor(
    output_tensor: Array, input_tensor: Array, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Join all ranks' inputs, ``(x1, ...)``, in rank order in every rank's ``output_tensor``, ``(N * x1, ...)``.

    Raises:
        TypeError: if an argument is not a tensor, ``group`` not a string, or ``async_op`` not a bool.
        ValueError: if the output has the wrong shape or dtype.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    own, out = memory("all_gather_into_tensor", input_tensor), memory("all_gather_into_tensor", output_tensor)
    require_flag(async_op)
    require_dtype("DistCommAllGatherIntoTensor", out, own)
    comm = group_of(group).communicator
    _require_joined("DistCommAllGatherIntoTensor", tuple(out.shape), tuple(own.shape), comm.size)
    return finish(comm.all_gather(own, out=out), async_op, output_tensor)


def all_gather_into_tensor_uneven(
    output: Array,
    input: Array,
    output_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Join all ranks' inputs in rank order in every rank's ``output``; rank r has ``output_split_sizes[r]`` rows.

    Raises:
        TypeError: if an argument is not a tensor, the sizes are not a list of ints, ``group`` is not a string, or
            ``async_op`` not a bool.
        ValueError: if the sizes are not one per rank or do not add up; if the output has the wrong shape or dtype.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    own, out = memory("all_gather_into_tensor_uneven", input), memory("all_gather_into_tensor_uneven", output)
    require_flag(async_op)
    require_dtype("DistCommAllGatherIntoTensorUneven", out, own)
    comm = group_of(group).communicator
    whole = as_output(out)
    rows = rows_of(comm, "output", tuple(whole.shape), output_split_sizes)
    return finish(comm.all_gather(own, out=whole.split(rows)), async_op, output)


def reduce_scatter_tensor(
    output: Array, input: Array, op: str = "sum", group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Reduce all ranks' inputs, ``(x1, ...)``, and write the r-th part to rank r's ``output``, ``(x1 / N, ...)``.

    Raises:
        TypeError: if an argument is not a tensor, ``op`` not a reduction, ``group`` not a string, or ``async_op`` not a
            bool.
        ValueError: if the output has the wrong shape or dtype.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    own, out = memory("reduce_scatter_tensor", input), memory("reduce_scatter_tensor", output)
    require_op("reduce_scatter_tensor", op)
    require_flag(async_op)
    require_dtype("DistCommReduceScatterTensor", out, own)
    comm = group_of(group).communicator
    return finish(
        comm.reduce_scatter(divide(require_dense(comm, "reduce_scatter_tensor", own), comm.size), op, out=out),
        async_op,
        output,
    )


def reduce_scatter_tensor_uneven(
    output: Array,
    input: Array,
    input_split_sizes: Sequence[int] | None = None,
    op: str = "sum",
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Reduce all ranks' inputs, and write the r-th part, ``input_split_sizes[r]`` rows, to rank r's ``output``.

    Raises:
        TypeError: if an argument is not a tensor, the sizes are not a list of ints, ``op`` is not a reduction,
            ``group`` is not a string, or ``async_op`` not a bool.
        ValueError: if the sizes are not one per rank or do not add up; if the output has the wrong shape or dtype.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    own, out = memory("reduce_scatter_tensor_uneven", input), memory("reduce_scatter_tensor_uneven", output)
    require_op("reduce_scatter_tensor_uneven", op)
    require_flag(async_op)
    require_dtype("DistCommReduceScatterTensorUneven", out, own)
    comm = group_of(group).communicator
    whole = require_dense(comm, "reduce_scatter_tensor_uneven", own)
    parts = whole.split(rows_of(comm, "input", tuple(whole.shape), input_split_sizes))
    return finish(comm.reduce_scatter(parts, op, out=out), async_op, output)


def all_to_all_single(
    output: Array,
    input: Array,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Send the r-th part of every rank's ``input`` to rank r, whose ``output`` holds the parts in rank order.

    Sizes are numbers of rows; None cuts the tensor into equal parts.

    Raises:
        TypeError: if an argument is not a tensor, the sizes are not a list of ints, ``group`` is not a string, or
            ``async_op`` not a bool.
        ValueError: if the sizes are not one per rank or do not add up; if there are no sizes and N does not divide the
            length.
        RuntimeError: if this rank is not initialised, the group does not exist, or a rank sends a different number of
            rows.
    """
    own, out = memory("all_to_all_single", input), memory("all_to_all_single", output)
    require_flag(async_op)
    require_dtype("DistCommAllToAllVSingle", out, own)
    comm = group_of(group).communicator
    sends = rows_of(comm, "input", tuple(own.shape), input_split_sizes)
    recvs = rows_of(comm, "output", tuple(out.shape), output_split_sizes)
    return finish(comm.all_to_all(own, out=out, splits=(sends, recvs)), async_op, output)


def all_to_all_v_c(
    output: Array,
    input: Array,
    send_count_matrix: Sequence[int],
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Write the elements that every rank sends to this rank into ``output``: see ``comm_func.all_to_all_v_c``."""
    own, out = memory("all_to_all_v_c", input), memory("all_to_all_v_c", output)
    require_flag(async_op)
    return _all_to_all_v_c(out, own, send_count_matrix, group, async_op)


def gather_into_tensor(
    output_tensor: Array, input_tensor: Array, dst: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Join all ranks' inputs in rank order in rank ``dst``'s ``output_tensor``; other ranks' outputs do not change.

    Raises:
        TypeError: if an argument is not a tensor, ``dst`` not an int, ``group`` not a string, or ``async_op`` not a
            bool.
        ValueError: if the output has the wrong shape or dtype.
        RuntimeError: if this rank is not initialised, the group does not exist, or ``dst`` is not in it.
    """
    own, out = memory("gather_into_tensor", input_tensor), memory("gather_into_tensor", output_tensor)
    require_rank("gather_into_tensor", "dst", dst)
    require_flag(async_op)
    require_dtype("DistCommGatherIntoTensor", out, own)
    members = group_of(group)
    return finish(members.communicator.gather(own, root_in(members, dst), out=out), async_op, output_tensor)


def scatter_tensor(
    output_tensor: Array, input_tensor: Array, src: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Send the r-th part of rank ``src``'s input to rank r's ``output_tensor``.

    Raises:
        TypeError: if an argument is not a tensor, ``src`` not an int, ``group`` not a string, or ``async_op`` not a
            bool.
        ValueError: if N does not divide the first axis; if the output has the wrong shape or dtype.
        RuntimeError: if this rank is not initialised, the group does not exist, or ``src`` is not in it.
    """
    own, out = memory("scatter_tensor", input_tensor), memory("scatter_tensor", output_tensor)
    require_rank("scatter_tensor", "src", src)
    require_flag(async_op)
    require_dtype("DistCommScatterTensor", out, own)
    members = group_of(group)
    root, comm = root_in(members, src), members.communicator
    parts = divide(require_dense(comm, "scatter_tensor", own), comm.size) if comm.rank == root else None
    return finish(comm.scatter(parts, root, out=out), async_op, output_tensor)


def barrier(group: str | None = None, async_op: bool = False, device_ids: Any = None) -> CommHandle | None:
    """Wait until every rank of the group has called this; ``device_ids`` is ignored.

    Raises:
        TypeError: if ``group`` is not a string, or ``async_op`` not a bool.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    require_flag(async_op)
    return finish(group_of(group).communicator.barrier(), async_op)


def _require_joined(primitive: str, output: tuple[int, ...], one: tuple[int, ...], size: int) -> None:
    """Refuse an output whose shape is not that of ``size`` tensors joined along the first axis."""
    wanted = (size * one[0], *one[1:]) if one else (size,)
    if output != wanted:
        text = f"output_tensor shape must be equal to {wanted}, but got {output}"
        refuse(ValueError, f"For {primitive!r}, {text}")
