"""Collectives of lists of tensors. Conventions of MindSpore 2.10.0: every rank passes a full list. Roots are global."""

from __future__ import annotations

from collections.abc import Sequence

from collshim.arrays import Array
from collshim.mindspore.communication.comm_func.arguments import root_in
from collshim.mindspore.communication.comm_func.handle import CommHandle
from collshim.mindspore.mint.distributed._arguments import (
    finish,
    group_of,
    memories,
    memory,
    require_dtype,
    require_flag,
    require_length,
    require_like,
    require_op,
    require_rank,
)


def all_gather(
    tensor_list: Sequence[Array], tensor: Array, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Gather all ranks' tensors into every rank's list.

    Only the rank's own entry must have the shape and dtype of the rank's tensor.

    Raises:
        TypeError: if ``tensor_list`` is not a list with one tensor per rank; if the rank's own entry has a different
            shape or dtype; if ``group`` is not a string; if ``async_op`` is not a bool.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    own, members = memory("all_gather", tensor), group_of(group)
    require_flag(async_op)
    outputs = memories(tensor_list, members)
    require_like("all_gather", outputs[members.communicator.rank], own)
    return finish(members.communicator.all_gather(own, out=outputs), async_op, *tensor_list)


def gather(
    tensor: Array, gather_list: Sequence[Array], dst: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Gather all ranks' tensors into rank ``dst``'s list; the other ranks' lists do not change.

    Raises:
        TypeError: if ``gather_list`` is not a list with one tensor per rank; if an entry has a different shape or
            dtype; if ``dst`` is not an int; if ``group`` is not a string; if ``async_op`` is not a bool.
        RuntimeError: if this rank is not initialised, the group does not exist, or ``dst`` is not in it.
    """
    own, members = memory("gather", tensor), group_of(group)
    require_rank("gather", "dst", dst)
    require_flag(async_op)
    comm, root = members.communicator, root_in(members, dst)
    outputs = memories(gather_list, members, counted=comm.rank == root)
    for output in outputs:
        require_like("gather", output, own)
    work = comm.gather(own, root, out=outputs)
    return finish(work, async_op, *gather_list)


def scatter(
    tensor: Array, scatter_list: Sequence[Array], src: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Send the r-th tensor of rank ``src``'s list to rank r's ``tensor``; the other ranks' lists are not read.

    Raises:
        TypeError: if ``scatter_list`` is not a list with one tensor per rank; if an entry has a different shape or
            dtype; if ``src`` is not an int; if ``group`` is not a string; if ``async_op`` is not a bool.
        RuntimeError: if this rank is not initialised, the group does not exist, or ``src`` is not in it.
    """
    own, members = memory("scatter", tensor), group_of(group)
    require_rank("scatter", "src", src)
    require_flag(async_op)
    comm, root = members.communicator, root_in(members, src)
    parts = memories(scatter_list, members, counted=comm.rank == root)
    for part in parts:
        require_like("scatter", own, part)
    return finish(comm.scatter(parts if comm.rank == root else None, root, out=own), async_op, tensor)


def reduce_scatter(
    output: Array, input_list: Sequence[Array], op: str = "sum", group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Reduce the r-th tensors of all lists into rank r's ``output``.

    Raises:
        TypeError: if ``input_list`` is not a list with one tensor per rank; if the rank's own entry has a different
            shape or dtype; if ``op`` is not a reduction; if ``group`` is not a string; if ``async_op`` is not a bool.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    out, members = memory("reduce_scatter", output), group_of(group)
    require_op("reduce_scatter", op)
    require_flag(async_op)
    parts = memories(input_list, members)
    require_like("reduce_scatter", out, parts[members.communicator.rank])
    return finish(members.communicator.reduce_scatter(parts, op, out=out), async_op, output)


def all_to_all(
    output_tensor_list: Sequence[Array],
    input_tensor_list: Sequence[Array],
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Send the r-th tensor of every rank's input list to rank r's output list; shapes may differ.

    A longer output list keeps the rest of its tensors unchanged.

    Raises:
        TypeError: if an argument is not a list with one tensor per rank; if ``group`` is not a string; if ``async_op``
            is not a bool.
        ValueError: if an output has a different dtype.
        RuntimeError: if this rank is not initialised, the group does not exist, or a rank sends a different shape.
    """
    members = group_of(group)
    require_flag(async_op)
    size, parts = members.communicator.size, memories(input_tensor_list, members)
    outputs = memories(output_tensor_list, members, counted=False)
    if len(outputs) < size:
        require_length("The argument list tensor len", outputs, members)
    for output in outputs:
        require_dtype("DistCommAllToAllV", output, parts[0])
    work = members.communicator.all_to_all(parts, out=outputs[:size])
    return finish(work, async_op, *output_tensor_list[:size])
