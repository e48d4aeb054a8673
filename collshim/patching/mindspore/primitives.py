"""MindSpore's operators: each reads its own attributes, and returns the result of its functional form."""

from __future__ import annotations

import torch

from collshim.errors import ArgumentError, also
from collshim.patching.mindspore.functional import Functional
from collshim.patching.mindspore.messages import MessagePrimitives
from collshim.patching.replacing import Foreign


class Primitives(MessagePrimitives):
    """The operators; each method has the name in the table, and its first argument is the operator."""

    def __init__(self, functional: Functional) -> None:
        super().__init__(functional)
        self._read = functional.tensors.read

    def all_reduce(self, op: Foreign, x: Foreign) -> Foreign:
        """Return the reduction of all ranks' tensors."""
        return self._functional.all_reduce(x, op.op, op.group).wait()

    def all_gather(self, op: Foreign, x: Foreign) -> Foreign:
        """Return all ranks' tensors, concatenated."""
        return self._functional.all_gather(x, op.group).wait()

    def reduce_scatter(self, op: Foreign, x: Foreign) -> Foreign:
        """Return this rank's part of the reduction."""
        return self._functional.reduce_scatter(x, op.op, op.group).wait()

    def broadcast(self, op: Foreign, xs: Foreign) -> Foreign:
        """Return the root's tensors as a tuple, or a single tensor if ``xs`` is one."""
        listed = xs if isinstance(xs, tuple | list) else (xs,)
        posted = self._functional.broadcast(listed, op.root_rank, op.group)
        first = posted.wait()
        return tuple(posted.outputs) if isinstance(xs, tuple | list) else first

    def reduce(self, op: Foreign, x: Foreign) -> Foreign:
        """Return the reduction on the root."""
        return self._functional.reduce(x, op.dest_rank, op.op, op.group).wait()

    def collective_gather(self, op: Foreign, x: Foreign) -> Foreign:
        """Return all ranks' tensors, concatenated, on the root."""
        return self._functional.gather(x, op.dest_rank, op.group).wait()

    def collective_scatter(self, op: Foreign, x: Foreign) -> Foreign:
        """Return this rank's part of the root's tensor."""
        return self._functional.scatter(x, op.src_rank, op.group).wait()

    def all_to_all(self, op: Foreign, x: Foreign) -> Foreign:
        """Return the parts that all ranks send to this one, concatenated along another axis."""
        comm = self._functional.groups.communicator(op.group)
        self._functional.tensors.require("AlltoAll", x, comm.rank, comm.size)
        shape, axes = tuple(x.shape), (op.split_dim, op.concat_dim)
        for what, axis in zip(("split_dim", "concat_dim"), axes, strict=True):
            _require(comm, -len(shape) <= axis < len(shape), f"AlltoAll: {what} is {axis}", f"an axis of {shape}")
        count = op.split_count
        _require(comm, count == comm.size, f"AlltoAll: split_count is {count}", f"the group's size, {comm.size}")
        length = shape[op.split_dim]
        _require(comm, length % count == 0, f"AlltoAll: axis {op.split_dim} has length {length}", f"n * {count}")
        return self._functional.all_to_all(x, axes, op.group).wait()

    def all_to_all_v(self, op: Foreign, x: Foreign, sends: Foreign, recvs: Foreign) -> Foreign:
        """Return the elements that all ranks send to this one, flattened."""
        block = op.block_size
        return self._functional.all_to_all_v(x, self._counts(sends, block), self._counts(recvs, block), op.group).wait()

    def all_to_all_v_c(self, op: Foreign, x: Foreign, matrix: Foreign) -> Foreign:
        """Do the same with the counts of all ranks, or their transpose."""
        comm = self._functional.groups.communicator(op.group)
        counts, size, own = self._counts(matrix, op.block_size), comm.size, comm.rank
        _require(comm, len(counts) == size * size, f"AlltoAllVC: there are {len(counts)} counts", f"{size} * {size}")
        row, column = counts[own * size : (own + 1) * size], counts[own::size]
        sends, recvs = (column, row) if op.transpose else (row, column)
        return self._functional.all_to_all_v(x, sends, recvs, op.group).wait()

    def all_gather_v(self, op: Foreign, x: Foreign, counts: Foreign) -> Foreign:
        """Return all ranks' elements, flattened."""
        return self._functional.all_gather_v(x, self._counts(counts, 1), op.group).wait()

    def reduce_scatter_v(self, op: Foreign, x: Foreign, counts: Foreign) -> Foreign:
        """Return this rank's elements of the reduction, flattened."""
        return self._functional.reduce_scatter_v(x, self._counts(counts, 1), op.op, op.group).wait()

    def barrier(self, op: Foreign) -> None:
        """Wait until every rank has called this."""
        self._functional.groups.communicator(op.group).barrier().wait()

    def _counts(self, values: Foreign, block: int) -> list[int]:
        numbers = self._read(values) if hasattr(values, "asnumpy") else torch.tensor(values)
        return [int(number) * block for number in numbers.reshape(-1).tolist()]


def _require(comm: Foreign, holds: bool, actual: str, expected: str) -> None:
    if not holds:
        raise also(ArgumentError, ValueError)(f"{actual}, should be {expected} (rank {comm.rank} of {comm.size})")
