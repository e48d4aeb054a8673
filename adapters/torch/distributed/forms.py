"""Parts in one tensor, end to end, ``(N * shape[0], ...)``, or stacked, ``(N, *shape)``, as views without copies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.adapting.refusing import refuse
from collshim.arrays import as_output, as_torch
from collshim.communicator import Communicator
from collshim.layout import split


def values(value: Any) -> Any:
    """Return an array, or a list of arrays, to read from, detached from torch's graph."""
    if isinstance(value, list):
        return [array if type(array) is Tensor and not array.requires_grad else values(array) for array in value]
    return value.detach() if isinstance(value, Tensor) and value.requires_grad else value


def outputs(value: Any) -> Any:
    """Return an array, or a list of arrays, that may be written to even outside ``torch.inference_mode``."""
    if isinstance(value, list):
        return [array if type(array) is Tensor and not array.is_inference() else outputs(array) for array in value]
    return _same_memory(value) if isinstance(value, Tensor) and value.is_inference() else value


def beneath(value: Any) -> Any:
    """Return detached ``outputs``: the caller's tensors may enter the graph before they are written."""
    if isinstance(value, list):
        return [beneath(array) for array in value]
    return outputs(value).detach() if isinstance(value, Tensor) else value


def uncounted(array: Any) -> Any:
    """Return an array whose writes autograd does not count as changes, so that saved tensors stay valid.

    torch 2.13 over gloo does the same in all_reduce, broadcast, reduce, scatter, all_to_all_single and recv: its C++
    writes only to the memory. The gather functions copy, which counts as a change.
    """
    if not isinstance(array, Tensor):
        return array
    return _same_memory(array) if array.is_inference() else array.data


def place(array: Any, what: str) -> Tensor:
    """Return a detached tensor over an array's own memory, to write to."""
    tensor: Tensor = array
    is_plain = type(array) is Tensor and not array.requires_grad and not array.is_inference()
    if is_plain and tensor.layout is torch.strided and tensor.is_contiguous():
        return tensor
    tensor = outputs(as_output(array, what=what))
    return tensor.detach()


def _same_memory(tensor: Tensor) -> Tensor:
    """Return a tensor over an inference tensor's memory that may be changed even outside inference mode."""
    if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg():
        return tensor
    with torch.inference_mode(False):
        empty = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
        return empty.set_(tensor.untyped_storage(), tensor.storage_offset(), tensor.size(), tensor.stride())


def parts_like(what: str, whole: Any, part: Any, comm: Communicator) -> Tensor:
    """Return ``whole``, for reading or writing, as ``(N, *shape)``: one part with the shape of ``part`` per rank."""
    tensor, shape = as_torch(whole), as_torch(part).shape
    stacked = (comm.size, *shape)
    if tensor.shape == stacked:
        return tensor
    concatenated = (comm.size * shape[0], *shape[1:]) if shape else stacked
    if tensor.shape != concatenated:
        refuse(RuntimeError, f"{what}'s shape is {tuple(tensor.shape)}, should be {concatenated} or {stacked}")
    return tensor.view(stacked)


def joined_like(what: str, whole: Any, part: Any, comm: Communicator) -> Tensor:
    """Return ``parts_like``, or ``whole`` itself if its shape shows the engine that the parts are end to end."""
    parts = parts_like(what, whole, part, comm)
    return parts if comm.size == parts.shape[0] == as_torch(whole).shape[0] else as_torch(whole)


def ints(what: str, sizes: Sequence[int] | None) -> list[int]:
    """Return split sizes as a list of ints; an empty list for None."""
    if not isinstance(sizes, Iterable | None):
        refuse(TypeError, f"incompatible function arguments: {what} is {sizes!r}, should be ints")
    numbers = [] if sizes is None else list(sizes)
    if not all(hasattr(size, "__index__") for size in numbers):
        refuse(TypeError, f"incompatible function arguments: {what} is {sizes!r}, should be ints")
    return [size.__index__() for size in numbers]


def pieces(what: str, whole: Tensor, sizes: list[int], comm: Communicator) -> Tensor | list[Tensor]:
    """Cut ``whole`` along dimension 0; return a list of pieces, or, without sizes, one stacked tensor."""
    numbers = lengths(what, whole, sizes, comm)
    return split(whole, comm.size) if numbers is None else list(torch.split(whole, list(numbers)))


def lengths(what: str, whole: Tensor, sizes: list[int], comm: Communicator) -> tuple[int, ...] | None:
    """Return the lengths of the pieces of ``whole`` along dimension 0; None if no sizes are passed and all are equal.

    torch 2.13 over gloo accepts a length that the number of ranks does not divide, and delivers memory behind the
    tensor.
    """
    if whole.dim() == 0:
        refuse(RuntimeError, f"{what} is a scalar, should have a dimension 0 to cut")
    length = whole.shape[0]
    if not sizes:
        if length % comm.size != 0:
            text = f"{what}'s dimension 0 is {length}, which does not divide equally across {comm.size} ranks"
            refuse(RuntimeError, f"{text}: pass split sizes")
        return None
    if len(sizes) != comm.size:
        text = f"Number of tensor splits not equal to group size: {what} has {len(sizes)}"
        refuse(RuntimeError, f"{text}, should be {comm.size}")
    if sum(sizes) != length or min(sizes) < 0:
        refuse(RuntimeError, f"Split sizes doesn't match total dim 0 size: {what} has {sizes} of {length}")
    return tuple(sizes)
