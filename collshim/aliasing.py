"""Memory that arrays share: results in the place of inputs, which are safe, and outputs that are not apart.

In place is safe where a rank's result replaces exactly its own input (all_reduce, reduce, broadcast), and where its
own part lies in its own place of the whole (all_gather, gather, scatter, reduce_scatter): nobody else reads or writes
those elements. Any other overlap would overwrite what is still to be sent: the inputs are copied first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from torch import Tensor

from collshim.layout import Parts

_STEPS = 1_000_000
"""Of NumPy's search for an element that two interleaved arrays share; what takes more counts as apart."""

_shares_memory: Callable[..., bool] = np.shares_memory  # its stub takes no number of steps

_WHOLE = ("all_reduce", "reduce", "broadcast")
_INTO_OWN_PLACE = ("all_gather", "gather")
_FROM_OWN_PLACE = ("scatter", "reduce_scatter")


def apart(op: str, rank: int, given: Parts, written: Parts) -> Parts:
    """``given``, or a copy where what is written would overwrite it too early."""
    if op in _WHOLE and _start(given) == _start(written):
        return given
    if not _overlap(given, written) or _in_place(op, rank, given, written):
        return given
    return given.clone() if isinstance(given, Tensor) else [part.clone() for part in given]


def _in_place(op: str, rank: int, given: Parts, written: Parts) -> bool:
    if op in _INTO_OWN_PLACE:
        return _start(given) == _start_of_part(written, rank) and not _overlap(given, _others(written, rank))
    if op in _FROM_OWN_PLACE:
        return _start_of_part(given, rank) == _start(written) and not _overlap(written, _others(given, rank))
    return False


def _others(parts: Parts, rank: int) -> list[Tensor]:
    """The parts that are a list's own memory; those of one tensor never overlap."""
    return [] if isinstance(parts, Tensor) else [part for index, part in enumerate(parts) if index != rank]


def _start(parts: Parts) -> int:
    return parts.data_ptr() if isinstance(parts, Tensor) else parts[0].data_ptr()


def _start_of_part(parts: Parts, rank: int) -> int:
    if isinstance(parts, Tensor):
        return parts.data_ptr() + rank * (parts.nbytes // parts.shape[0])
    return parts[rank].data_ptr()


def _overlap(one: Parts, other: Parts) -> bool:
    ranges = _ranges(other)
    return any(start < stop and begin < end for start, end in _ranges(one) for begin, stop in ranges)


def _ranges(parts: Parts) -> list[tuple[int, int]]:
    """First and last byte of each tensor that has any; all are contiguous here."""
    tensors = [parts] if isinstance(parts, Tensor) else parts
    return [(tensor.data_ptr(), tensor.data_ptr() + tensor.nbytes) for tensor in tensors if tensor.nbytes]


def sharing(tensors: Sequence[Tensor]) -> tuple[int, int] | None:
    """The places of two tensors that share an element, the lower one first; None where all are apart.

    Interleaved ones, columns of a matrix for instance, are apart.
    """
    spans = sorted((tensor.data_ptr(), place) for place, tensor in enumerate(tensors) if tensor.numel())
    addresses = cache(lambda place: np.asarray(_Addresses(tensors[place])))
    reaching: list[tuple[int, int]] = []
    for start, place in spans:
        reaching = [(end, other) for end, other in reaching if end > start]
        for _, other in reaching:
            if _share(addresses(other), addresses(place)):
                return min(place, other), max(place, other)
        reaching.append((start + _reach(tensors[place]), place))
    return None


def _reach(tensor: Tensor) -> int:
    """Bytes from the first element to behind the last one."""
    if tensor.is_contiguous():
        return tensor.nbytes
    steps = sum(step * (length - 1) for step, length in zip(tensor.stride(), tensor.shape, strict=True))
    return (steps + 1) * tensor.element_size()


def _share(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> bool:
    try:
        return _shares_memory(one, other, max_work=_STEPS)
    except RuntimeError:  # numpy.exceptions.TooHardError, which has moved between releases
        return False


class _Addresses:
    """A tensor's addresses for NumPy to compute with; nothing is read there, so they may be a GPU's."""

    def __init__(self, tensor: Tensor) -> None:
        width = tensor.element_size()
        self.__array_interface__: dict[str, Any] = {
            "version": 3,
            "data": (tensor.data_ptr(), False),
            "shape": tuple(tensor.shape),
            "strides": tuple(step * width for step in tensor.stride()),
            "typestr": f"|V{width}",
        }
