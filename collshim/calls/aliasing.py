"""Find arrays that share memory: results written over inputs, and outputs that overlap each other.

Working in place is safe if a rank's result replaces exactly its own input (all_reduce, reduce, broadcast), or if the
rank's own part is at its own position in the whole (all_gather, gather, scatter, reduce_scatter): no other rank reads
or writes those elements. Any other overlap would overwrite data that has yet to be sent, so the inputs are copied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np
from torch import Tensor

from collshim.calls.collective import Collective
from collshim.layout import Parts

Span: TypeAlias = tuple[int, int]
"""The address of a tensor's first byte, and the address just past its last byte."""

_STEPS = 1_000_000
"""The limit on NumPy's search for an element that two interleaved arrays share; past it, they count as apart."""

_shares_memory: Callable[..., bool] = np.shares_memory  # its stub lacks max_work


def are_apart(read: Sequence[Tensor], written: Sequence[Tensor]) -> bool:
    """Return whether no written tensor overlaps any other tensor; all are contiguous.

    If a tensor is read twice, or if lengths differ, the result can be False although they are apart.
    """
    spans = sorted([(tensor.data_ptr(), tensor.nbytes) for tensor in (*read, *written)])
    end = 0
    for start, nbytes in spans:
        if start < end:
            return False
        end = start + nbytes
    return True


def without_overlap(collective: Collective, rank: int, inputs: Parts, outputs: Parts) -> Parts:
    """Return ``inputs``, or a copy if writing to ``outputs`` would overwrite them too early."""
    if collective.gives == collective.gets == "tensor" and _start(inputs) == _start(outputs):
        return inputs
    if not _overlap(inputs, outputs) or _in_place(collective, rank, inputs, outputs):
        return inputs
    return inputs.clone() if isinstance(inputs, Tensor) else [part.clone() for part in inputs]


def _in_place(collective: Collective, rank: int, inputs: Parts, outputs: Parts) -> bool:
    """Return whether a rank's own part is at its own position in the whole, and nothing else overlaps."""
    if collective.gives == "tensor" and collective.gets == "parts":
        return _start(inputs) == _start_of_part(outputs, rank) and not _overlap(inputs, _others(outputs, rank))
    if collective.gives == "parts" and collective.gets == "tensor":
        return _start_of_part(inputs, rank) == _start(outputs) and not _overlap(outputs, _others(inputs, rank))
    return False


def _others(parts: Parts, rank: int) -> list[Tensor]:
    """Return the other ranks' parts in a list; none for a single tensor, whose parts never overlap."""
    return [] if isinstance(parts, Tensor) else [part for index, part in enumerate(parts) if index != rank]


def _start(parts: Parts) -> int:
    return parts.data_ptr() if isinstance(parts, Tensor) else parts[0].data_ptr()


def _start_of_part(parts: Parts, rank: int) -> int:
    if isinstance(parts, Tensor):
        return parts.data_ptr() + rank * (parts.nbytes // parts.shape[0])
    return parts[rank].data_ptr()


def _overlap(one: Parts, other: Parts) -> bool:
    others = spans(other)
    return any(start < stop and begin < end for start, end in spans(one) for begin, stop in others)


def spans(parts: Parts | None) -> list[Span]:
    """Return the spans of the tensors that are not empty; all are contiguous here."""
    tensors = [parts] if isinstance(parts, Tensor) else parts or ()
    return [(tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes) for tensor in tensors if tensor.nbytes]


def sharing(tensors: Sequence[Tensor]) -> tuple[int, int] | None:
    """Return the indices of two tensors that share an element, the lower one first; None if all are apart.

    Interleaved tensors, such as columns of a matrix, are apart.
    """
    spans = sorted((tensor.data_ptr(), index) for index, tensor in enumerate(tensors) if tensor.numel())
    addresses = cache(lambda index: np.asarray(_Addresses(tensors[index])))
    reaching: list[tuple[int, int]] = []
    for start, index in spans:
        reaching = [(end, other) for end, other in reaching if end > start]
        for _, other in reaching:
            if _share(addresses(other), addresses(index)):
                return min(index, other), max(index, other)
        reaching.append((start + _reach(tensors[index]), index))
    return None


def _reach(tensor: Tensor) -> int:
    """Return the number of bytes from the start of the first element to the end of the last one."""
    if tensor.is_contiguous():
        return tensor.nbytes
    steps = sum(step * (length - 1) for step, length in zip(tensor.stride(), tensor.shape, strict=True))
    return (steps + 1) * tensor.element_size()


def _share(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    try:
        return _shares_memory(one, other, max_work=_STEPS)
    except RuntimeError:  # numpy.exceptions.TooHardError, whose module differs between releases
        return False


class _Addresses:
    """A tensor's addresses for NumPy to compute with. The memory is never read, so it can be on a GPU."""

    def __init__(self, tensor: Tensor) -> None:
        width = tensor.element_size()
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "data": (tensor.data_ptr(), False),
            "shape": tuple(tensor.shape),
            "strides": tuple(step * width for step in tensor.stride()),
            "typestr": f"|V{width}",
        }
