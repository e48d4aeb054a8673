"""How the all_to_all functions divide tensors; validated before anything is sent, in MindSpore's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.adapting.refusing import refuse
from collshim.arrays import Array, as_output, as_torch, is_array
from collshim.calls.call import name_of
from collshim.communicator import Communicator
from collshim.errors import MismatchError, refusal
from collshim.layout import cut, joined

Shape = tuple[int, ...]


def sequence_of(value: object) -> Sequence[Any]:
    """Return a list or a tuple; refuse anything else."""
    if not isinstance(value, list | tuple):
        refuse(TypeError, f"Expected list or tuple, but got {type(value)}.")
    return value


def tensors_of(values: Sequence[Array]) -> list[Tensor]:
    """Return the tensors to send; refuse tensors of different dtypes."""
    for value in sequence_of(values):
        if not is_array(value):
            refuse(
                TypeError,
                f"For all_to_all, the element of input_tensor_list must be tensor, but got {type(value)}",
            )
    tensors = [as_torch(value) for value in values]
    for tensor in tensors[1:]:
        if tensor.dtype != tensors[0].dtype:
            names = [name_of(other.dtype).title() for other in (tensors[0], tensor)]
            refuse(TypeError, f"all_to_all input dtype must be the same, but got {names[0]} and {names[1]}.")
    return tensors


def shape_of(value: Any) -> Shape:
    """Return a shape from a tuple of lengths, or a tensor of that shape."""
    if is_array(value):
        return tuple(int(length) for length in value.shape)
    if isinstance(value, list):
        refuse(TypeError, f"unhashable type: 'list': a shape is a tuple or a tensor, but got {value}")
    if not isinstance(value, tuple) or not all(isinstance(length, int) for length in value):
        refuse(TypeError, f"a shape must be a tuple of int or a tensor, but got {value!r}")
    if any(length < 0 for length in value):
        refuse(ValueError, f"a shape must have no negative length, but got {value}")
    return value


def require_one_per_rank(comm: Communicator, what: str, values: Sequence[Any]) -> None:
    """Refuse a list whose length is not the number of ranks in the group."""
    if len(values) != comm.size:
        text = f"The argument list tensor len must be equal to group rank size, but got {len(values)} in {what}"
        refuse(TypeError, f"{text}")


def rows_of(comm: Communicator, what: str, shape: Shape, sizes: Sequence[int] | None) -> list[int]:
    """Return the number of rows to, or from, each rank: ``sizes``, or equal numbers."""
    if not shape:
        refuse(
            ValueError,
            f"{what} shape must have a dim 0 to divide, but got () (rank {comm.rank} of {comm.size})",
        )
    length = shape[0]
    if sizes is None:
        if length % comm.size:
            text = f"{what} shape at dim 0 must be divided by world_size, but got {length} and {comm.size}."
            refuse(ValueError, text)
        return [length // comm.size] * comm.size
    rows = list(sequence_of(sizes))
    if not all(isinstance(row, int) for row in rows):
        refuse(TypeError, f"{what}_split_sizes must be a list of int, but got {rows}")
    if len(rows) != comm.size or any(row < 0 for row in rows) or sum(rows) != length:
        text = f"{what}_split_sizes must be {comm.size} counts that add up to {length}, but got {rows}"
        refuse(ValueError, f"{text}")
    return rows


def matrix_counts(comm: Communicator, matrix: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return the numbers of elements to and from each rank, from the matrix that all ranks pass."""
    counts, size = list(sequence_of(matrix)), comm.size
    if not all(isinstance(count, int) for count in counts):
        refuse(TypeError, f"send_count_matrix must be a list of int, but got {counts}")
    if len(counts) != size * size or any(count < 0 for count in counts):
        refuse(ValueError, f"send_count_matrix must be {size} * {size} counts, none negative, but got {counts}")
    return counts[comm.rank * size : (comm.rank + 1) * size], counts[comm.rank :: size]


def pieces(what: str, flat: Tensor, counts: list[int]) -> list[Tensor]:
    """Cut a flat tensor into pieces with the given numbers of elements."""
    if sum(counts) != flat.numel():
        text = f"send_count_matrix gives {sum(counts)} elements {counts} for {what}, which has {flat.numel()}"
        refuse(ValueError, text)
    return cut(flat, [(count,) for count in counts])


def flat_output(output: Array) -> Tensor:
    """Return the output's memory, flat; refuse an output that is not contiguous."""
    target = as_output(output).detach()
    if not target.is_contiguous():
        refuse(
            ValueError,
            f"output must be contiguous, but has shape {tuple(target.shape)}, stride {target.stride()}",
        )
    return target.view(-1)


def require_shapes(comm: Communicator, outputs: Sequence[Tensor], shapes: Sequence[Shape]) -> Sequence[Tensor]:
    """Return the outputs; raise MismatchError unless they have the expected shapes."""
    for sender, (part, shape) in enumerate(zip(outputs, shapes, strict=True)):
        if tuple(part.shape) != shape:
            actual, expected = f"{tuple(part.shape)} from rank {sender}", f"{shape}"
            raise MismatchError(refusal("all_to_all", "shape received", actual, expected, comm.rank, comm.size))
    return outputs


def join_rows(parts: Sequence[Tensor]) -> Tensor:
    """Join parts along the first dimension: in the same memory, unless a part carries a gradient."""
    whole = None if any(part.requires_grad for part in parts) else joined(parts)
    if whole is None:
        return torch.cat(list(parts))
    return whole.view(sum(len(part) for part in parts), *parts[0].shape[1:])
