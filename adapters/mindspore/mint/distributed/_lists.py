"""Collectives of lists of tensors. Conventions of MindSpore 2.10.0: every rank gives a full list. Roots are global."""

from __future__ import annotations

from collections.abc import Sequence

from collshim.arrays import Array
from collshim.mindspore.communication.comm_func.arguments import root_in
from collshim.mindspore.communication.comm_func.handle import CommHandle
from collshim.mindspore.mint.distributed._arguments import (
    finished,
    group_of,
    memories,
    memory,
    require_flag,
    require_like,
    require_op,
    require_rank,
)


def all_gather(
    tensor_list: Sequence[Array], tensor: Array, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Every rank's list holds all ranks' tensors; its own place is like its own tensor, the others may be unequal.

    Raises:
        TypeError: no list of a tensor per rank; another shape or dtype; ``group`` no string; ``async_op`` no bool.
        RuntimeError: not initialised, or no such group.
    """
    own, members = memory("all_gather", tensor), group_of(group)
    require_flag(async_op)
    outputs = memories(tensor_list, members)
    require_like("all_gather", outputs[members.communicator.rank], own)
    return finished(members.communicator.all_gather(own, out=outputs), async_op, *tensor_list)


def gather(
    tensor: Array, gather_list: Sequence[Array], dst: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Rank ``dst``'s list holds all ranks' tensors; the others' lists are unchanged.

    Raises:
        TypeError: no list of a tensor per rank; another shape or dtype; ``dst`` no int; ``group`` no string;
            ``async_op`` no bool.
        RuntimeError: not initialised, no such group, or ``dst`` is not in it.
    """
    own, members = memory("gather", tensor), group_of(group)
    require_rank("gather", "dst", dst)
    require_flag(async_op)
    comm, root = members.communicator, root_in(members, dst)
    outputs = memories(gather_list, members, counted=comm.rank == root)
    for output in outputs:
        require_like("gather", output, own)
    work = comm.gather(own, root, out=outputs)
    return finished(work, async_op, *gather_list)


def scatter(
    tensor: Array, scatter_list: Sequence[Array], src: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Rank r's ``tensor`` holds the r-th of rank ``src``'s list; the others' lists are not read.

    Raises:
        TypeError: no list of a tensor per rank; another shape or dtype; ``src`` no int; ``group`` no string;
            ``async_op`` no bool.
        RuntimeError: not initialised, no such group, or ``src`` is not in it.
    """
    own, members = memory("scatter", tensor), group_of(group)
    require_rank("scatter", "src", src)
    require_flag(async_op)
    comm, root = members.communicator, root_in(members, src)
    parts = memories(scatter_list, members, counted=comm.rank == root)
    for part in parts:
        require_like("scatter", own, part)
    return finished(comm.scatter(parts if comm.rank == root else None, root, out=own), async_op, tensor)


def reduce_scatter(
    output: Array, input_list: Sequence[Array], op: str = "sum", group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Rank r's ``output`` holds the reduction of the r-th tensors of all lists.

    Raises:
        TypeError: no list of a tensor per rank; another shape or dtype; another ``op``; ``group`` no string;
            ``async_op`` no bool.
        RuntimeError: not initialised, or no such group.
    """
    out, members = memory("reduce_scatter", output), group_of(group)
    require_op("reduce_scatter", op)
    require_flag(async_op)
    parts = memories(input_list, members)
    require_like("reduce_scatter", out, parts[members.communicator.rank])
    return finished(members.communicator.reduce_scatter(parts, op, out=out), async_op, output)


def all_to_all(
    output_tensor_list: Sequence[Array],
    input_tensor_list: Sequence[Array],
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Rank r's output list holds the r-th tensor of every rank's input list; shapes may be unequal.

    Raises:
        TypeError: no list of a tensor per rank; ``group`` no string; ``async_op`` no bool.
        RuntimeError: not initialised, no such group; a rank sends another shape than is awaited.
    """
    members = group_of(group)
    require_flag(async_op)
    outputs, parts = memories(output_tensor_list, members), memories(input_tensor_list, members)
    return finished(members.communicator.all_to_all(parts, out=outputs), async_op, *output_tensor_list)
