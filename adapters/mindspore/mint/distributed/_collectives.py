"""Collectives of whole tensors, written in place. Conventions of MindSpore 2.10.0. Roots are global ranks.

None comes back, or a handle with ``async_op``. No gradient flows through any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collshim.arrays import Array, as_output
from collshim.mindspore.communication.comm_func import all_to_all_v_c as _all_to_all_v_c
from collshim.mindspore.communication.comm_func.arguments import dense, divided, root_in
from collshim.mindspore.communication.comm_func.handle import CommHandle
from collshim.mindspore.communication.comm_func.splits import rows_of
from collshim.mindspore.mint.distributed._arguments import (
    finished,
    group_of,
    memory,
    require_flag,
    require_op,
    require_rank,
)


def all_reduce(tensor: Array, op: str = "sum", group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Every rank's ``tensor`` holds the reduction of all: "sum", "prod", "min", "max" or "avg".

    Raises:
        TypeError: no tensor; another ``op``; ``group`` no string; ``async_op`` no bool.
        RuntimeError: not initialised, or no such group.
    """
    own = memory("all_reduce", tensor)
    require_op("all_reduce", op)
    require_flag(async_op)
    return finished(group_of(group).communicator.all_reduce(own, op, out=own), async_op, tensor)


def reduce(
    tensor: Array, dst: int, op: str = "sum", group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Rank ``dst``'s ``tensor`` holds the reduction of all; the others are unchanged.

    Raises:
        TypeError: no tensor; ``dst`` no int; another ``op``; ``group`` no string; ``async_op`` no bool.
        RuntimeError: not initialised, no such group, or ``dst`` is not in it.
    """
    own = memory("reduce", tensor)
    require_rank("reduce", "dst", dst)
    require_op("reduce", op)
    require_flag(async_op)
    members = group_of(group)
    return finished(members.communicator.reduce(own, root_in(members, dst), op, out=own), async_op, tensor)


def broadcast(tensor: Array, src: int, group: str | None = None, async_op: bool = False) -> CommHandle | None:
    """Every rank's ``tensor`` holds rank ``src``'s.

    Raises:
        TypeError: no tensor; ``src`` no int; ``group`` no string; ``async_op`` no bool.
        RuntimeError: not initialised, no such group, or ``src`` is not in it.
    """
    own = memory("broadcast", tensor)
    require_rank("broadcast", "src", src)
    require_flag(async_op)
    members = group_of(group)
    return finished(members.communicator.broadcast(own, root_in(members, src), out=own), async_op, tensor)


def all_gather_into_tensor(
    output_tensor: Array, input_tensor: Array, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Every rank's ``output_tensor``, ``(N * x1, ...)``, holds all inputs, ``(x1, ...)``, joined.

    Raises:
        TypeError: no tensors; ``group`` no string; ``async_op`` no bool.
        ValueError: another shape or dtype of the output.
        RuntimeError: not initialised, or no such group.
    """
    own, out = memory("all_gather_into_tensor", input_tensor), memory("all_gather_into_tensor", output_tensor)
    require_flag(async_op)
    return finished(group_of(group).communicator.all_gather(own, out=out), async_op, output_tensor)


def all_gather_into_tensor_uneven(
    output: Array,
    input: Array,
    output_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Every rank's ``output`` holds all inputs, joined; ``output_split_sizes`` has every rank's number of rows.

    Raises:
        TypeError: no tensors; no list of ints; ``group`` no string; ``async_op`` no bool.
        ValueError: sizes that are not one per rank or do not add up; another shape or dtype of the output.
        RuntimeError: not initialised, or no such group.
    """
    own, out = memory("all_gather_into_tensor_uneven", input), memory("all_gather_into_tensor_uneven", output)
    require_flag(async_op)
    comm = group_of(group).communicator
    whole = as_output(out)
    rows = rows_of(comm, "output", tuple(whole.shape), output_split_sizes)
    return finished(comm.all_gather(own, out=whole.split(rows)), async_op, output)


def reduce_scatter_tensor(
    output: Array, input: Array, op: str = "sum", group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Rank r's ``output``, ``(x1 / N, ...)``, holds the r-th part of the reduction of all inputs, ``(x1, ...)``.

    Raises:
        TypeError: no tensors; another ``op``; ``group`` no string; ``async_op`` no bool.
        ValueError: another shape or dtype of the output.
        RuntimeError: not initialised, or no such group.
    """
    own, out = memory("reduce_scatter_tensor", input), memory("reduce_scatter_tensor", output)
    require_op("reduce_scatter_tensor", op)
    require_flag(async_op)
    comm = group_of(group).communicator
    return finished(
        comm.reduce_scatter(divided(dense(comm, "reduce_scatter_tensor", own), comm.size), op, out=out),
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
    """As ``reduce_scatter_tensor``, with every rank's number of rows in ``input_split_sizes``.

    Raises:
        TypeError: no tensors; no list of ints; another ``op``; ``group`` no string; ``async_op`` no bool.
        ValueError: sizes that are not one per rank or do not add up; another shape or dtype of the output.
        RuntimeError: not initialised, or no such group.
    """
    own, out = memory("reduce_scatter_tensor_uneven", input), memory("reduce_scatter_tensor_uneven", output)
    require_op("reduce_scatter_tensor_uneven", op)
    require_flag(async_op)
    comm = group_of(group).communicator
    whole = dense(comm, "reduce_scatter_tensor_uneven", own)
    parts = whole.split(rows_of(comm, "input", tuple(whole.shape), input_split_sizes))
    return finished(comm.reduce_scatter(parts, op, out=out), async_op, output)


def all_to_all_single(
    output: Array,
    input: Array,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """Rank r's ``output`` holds the r-th part of every rank's ``input``, joined; sizes are numbers of rows.

    Raises:
        TypeError: no tensors; no list of ints; ``group`` no string; ``async_op`` no bool.
        ValueError: sizes that are not one per rank or do not add up; without sizes, a length that N does not divide.
        RuntimeError: not initialised, no such group; a rank sends another number of rows than is awaited.
    """
    own, out = memory("all_to_all_single", input), memory("all_to_all_single", output)
    require_flag(async_op)
    comm = group_of(group).communicator
    sends = rows_of(comm, "input", tuple(own.shape), input_split_sizes)
    recvs = rows_of(comm, "output", tuple(out.shape), output_split_sizes)
    return finished(comm.all_to_all(own, out=out, splits=(sends, recvs)), async_op, output)


def all_to_all_v_c(
    output: Array,
    input: Array,
    send_count_matrix: Sequence[int],
    group: str | None = None,
    async_op: bool = False,
) -> CommHandle | None:
    """``output`` holds what every rank sends to this one: ``comm_func.all_to_all_v_c``."""
    own, out = memory("all_to_all_v_c", input), memory("all_to_all_v_c", output)
    require_flag(async_op)
    return _all_to_all_v_c(out, own, send_count_matrix, group, async_op)


def gather_into_tensor(
    output_tensor: Array, input_tensor: Array, dst: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Rank ``dst``'s ``output_tensor`` holds all inputs, joined; the others are unchanged.

    Raises:
        TypeError: no tensors; ``dst`` no int; ``group`` no string; ``async_op`` no bool.
        ValueError: another shape or dtype of the output.
        RuntimeError: not initialised, no such group, or ``dst`` is not in it.
    """
    own, out = memory("gather_into_tensor", input_tensor), memory("gather_into_tensor", output_tensor)
    require_rank("gather_into_tensor", "dst", dst)
    require_flag(async_op)
    members = group_of(group)
    return finished(members.communicator.gather(own, root_in(members, dst), out=out), async_op, output_tensor)


def scatter_tensor(
    output_tensor: Array, input_tensor: Array, src: int = 0, group: str | None = None, async_op: bool = False
) -> CommHandle | None:
    """Rank r's ``output_tensor`` holds the r-th part of rank ``src``'s input.

    Raises:
        TypeError: no tensors; ``src`` no int; ``group`` no string; ``async_op`` no bool.
        ValueError: N does not divide the first axis; another shape or dtype of the output.
        RuntimeError: not initialised, no such group, or ``src`` is not in it.
    """
    own, out = memory("scatter_tensor", input_tensor), memory("scatter_tensor", output_tensor)
    require_rank("scatter_tensor", "src", src)
    require_flag(async_op)
    members = group_of(group)
    root, comm = root_in(members, src), members.communicator
    parts = divided(dense(comm, "scatter_tensor", own), comm.size) if comm.rank == root else None
    return finished(comm.scatter(parts, root, out=out), async_op, output_tensor)


def barrier(group: str | None = None, async_op: bool = False, device_ids: Any = None) -> CommHandle | None:
    """No rank leaves before every rank of the group has come; ``device_ids`` is not read.

    Raises:
        TypeError: ``group`` no string; ``async_op`` no bool.
        RuntimeError: not initialised, or no such group.
    """
    require_flag(async_op)
    return finished(group_of(group).communicator.barrier(), async_op)
