"""AllGatherV, ReduceScatterV, AlltoAllV, AlltoAllVC: for parts of unequal length. Conventions of MindSpore 2.10.0.

Counts are numbers of elements, in a list, a tuple or a tensor. Inputs are read in row-major order; results are flat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_torch, is_array
from collshim.mindspore.communication.comm_func.arguments import require_tensor
from collshim.mindspore.communication.comm_func.handle import in_kind_of
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP, Group
from collshim.mindspore.ops.operations._arguments import Collective, Reducing, require_type

__all__ = ["AllGatherV", "AlltoAllV", "AlltoAllVC", "ReduceScatterV"]
Counts = Sequence[int] | Array


class AllGatherV(Collective):
    """A primitive that returns all ranks' elements, joined in rank order, on every rank of ``group``.

    A call takes the number of each rank's elements.

    Raises:
        TypeError: ``group`` is not a string; in a call, the input is not a tensor.
        ValueError: in a call, there is not one count per rank, or this rank's count is not its length.
        RuntimeError: this rank has no such group; in a call, the counts are not ints.
    """

    _wrong_count = RuntimeError

    def __init__(self, group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__("AllGatherV", group)

    def __call__(self, input_x: Array, output_split_sizes: Counts) -> Array:
        """Return all ranks' elements."""
        members, flat = self.members, _flat(self.name, input_x)
        comm = members.communicator
        counts = _counts(self.name, "output_split_sizes", output_split_sizes, members)
        if counts[comm.rank] != len(flat):
            text = f"output_split_sizes {counts} gives this rank {counts[comm.rank]} elements, and it has {len(flat)}"
            refuse(ValueError, f"For '{self.name}', {text}")
        parts = comm.all_to_all([flat] * comm.size, shapes=[(count,) for count in counts]).wait()
        return in_kind_of(input_x, torch.cat(list(parts)))


class ReduceScatterV(Reducing):
    """A primitive that returns the r-th part of the reduction of all ranks' elements on rank r of ``group``.

    A call takes the number of elements in each rank's part.

    Raises:
        TypeError: ``op`` or ``group`` is not a string; in a call, the input is not a tensor.
        ValueError: in a call, ``op`` is unknown, there is not one count per rank, or they do not add up to the length.
        RuntimeError: this rank has no such group; in a call, the counts are not ints.
    """

    _wrong_count = RuntimeError

    def __init__(self, op: str = "sum", group: str = HCCL_WORLD_COMM_GROUP) -> None:
        super().__init__("ReduceScatterV", op, group)

    def __call__(self, input_x: Array, input_split_sizes: Counts) -> Array:
        """Return this rank's part."""
        members, flat = self.members, _flat(self.name, input_x)
        counts = _counts(self.name, "input_split_sizes", input_split_sizes, members)
        parts = _cut(self.name, flat, counts)
        return in_kind_of(input_x, members.communicator.reduce_scatter(parts, self.operation).wait())


class AlltoAllV(Collective):
    """A primitive that returns the r-th part of every rank's elements, joined in rank order, on rank r of ``group``.

    A call takes the counts to each rank, and the counts from each rank.

    Args:
        group: the group's name; None for all ranks.
        block_size: the number of elements that a count of one means.

    Raises:
        TypeError: ``group`` is not a string, or ``block_size`` not an int; in a call, the input is not a tensor.
        ValueError: in a call, there is not one count per rank, or they do not add up to the tensor's length.
        RuntimeError: this rank has no such group; the counts are not ints; a rank sends an unexpected number of
            elements.
    """

    _wrong_count = RuntimeError

    def __init__(self, group: str | None = HCCL_WORLD_COMM_GROUP, block_size: int = 1) -> None:
        require_type("AlltoAllV", "block_size", block_size, int)
        super().__init__("AlltoAllV", HCCL_WORLD_COMM_GROUP if group is None else group)
        self.add_prim_attr("block_size", block_size)

    def __call__(self, input_x: Array, send_numel_list: Counts, recv_numel_list: Counts) -> Array:
        """Return every rank's elements for this rank, joined."""
        members = self.members
        sends = _counts(self.name, "send_numel_list", send_numel_list, members, self.attrs["block_size"])
        recvs = _counts(self.name, "recv_numel_list", recv_numel_list, members, self.attrs["block_size"])
        return _exchange(self.name, members, input_x, sends, recvs)


class AlltoAllVC(Collective):
    """``AlltoAllV`` with the counts of all ranks: ``matrix[i][j]`` elements go from rank i to rank j.

    Args:
        group: the group's name; None for all ranks.
        block_size: the number of elements that a count of one means.
        transpose: whether ``matrix[j][i]`` is that count instead.

    Raises:
        TypeError: ``group`` is not a string, or ``block_size`` not an int; in a call, the input is not a tensor, or the
            counts are not ints.
        ValueError: in a call, there are not N * N counts, or they do not add up to the tensor's length.
        RuntimeError: this rank has no such group.
    """

    _wrong_count = RuntimeError

    def __init__(self, group: str | None = HCCL_WORLD_COMM_GROUP, block_size: int = 1, transpose: bool = False) -> None:
        require_type("AlltoAllVC", "block_size", block_size, int)
        super().__init__("AlltoAllVC", HCCL_WORLD_COMM_GROUP if group is None else group)
        self.add_prim_attr("block_size", block_size)
        self.add_prim_attr("transpose", transpose)

    def __call__(self, input_x: Array, send_count_matrix: Counts) -> Array:
        """Return every rank's elements for this rank, joined."""
        members, block = self.members, self.attrs["block_size"]
        size, own = members.communicator.size, members.communicator.rank
        counts = [count * block for count in _integers(self.name, "send_count_matrix", send_count_matrix, TypeError)]
        if len(counts) != size * size or any(count < 0 for count in counts):
            text = f"send_count_matrix must be {size} * {size} counts, none negative, but got {counts}"
            refuse(ValueError, f"For '{self.name}', {text}")
        row, column = counts[own * size : (own + 1) * size], counts[own::size]
        sends, recvs = (column, row) if self.attrs["transpose"] else (row, column)
        return _exchange(self.name, members, input_x, sends, recvs)


def _exchange(name: str, members: Group, array: Array, sends: list[int], recvs: list[int]) -> Array:
    parts = _cut(name, _flat(name, array), sends)
    received = members.communicator.all_to_all(parts, shapes=[(count,) for count in recvs]).wait()
    return in_kind_of(array, torch.cat(list(received)))


def _flat(name: str, array: Array) -> Tensor:
    require_tensor(name, array)
    return as_torch(array).reshape(-1)


def _cut(name: str, flat: Tensor, counts: list[int]) -> list[Tensor]:
    if sum(counts) != len(flat):
        refuse(ValueError, f"For '{name}', the counts {counts} must add up to the {len(flat)} elements of the input")
    return list(flat.split(counts))


def _integers(name: str, what: str, values: Any, wrong: type[Exception] = RuntimeError) -> list[int]:
    numbers = as_torch(values).reshape(-1).tolist() if is_array(values) else values
    if isinstance(numbers, list | tuple) and numbers and all(isinstance(row, list | tuple) for row in numbers):
        numbers = [count for row in numbers for count in row]
    if not isinstance(numbers, list | tuple) or not all(type(number) is int for number in numbers):
        refuse(wrong, f"For '{name}', {what} must be a list or a tensor of int, but got {values!r}")
    return list(numbers)


def _counts(name: str, what: str, values: Any, members: Group, block: int = 1) -> list[int]:
    counts, size = _integers(name, what, values), members.communicator.size
    if len(counts) != size or any(count < 0 for count in counts):
        refuse(ValueError, f"For '{name}', {what} must be {size} counts, none negative, but got {counts}")
    return [count * block for count in counts]
