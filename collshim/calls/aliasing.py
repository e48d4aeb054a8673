"""Memory that arrays share: results in the place of inputs, which are safe, and outputs that are not apart.

In place is safe where a rank's result replaces exactly its own input (all_reduce, reduce, broadcast), and where its
own part lies in its own place of the whole (all_gather, gather, scatter, reduce_scatter): no other rank reads or
writes those elements. Any other overlap would overwrite what is still to be sent: the inputs are copied first.
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
"""The addresses of a tensor's first byte and of the one behind its last."""

_STEPS = 1_000_000
"""Of NumPy's search for an element that two interleaved arrays share; what takes more counts as apart."""

_shares_memory: Callable[..., bool] = np.shares_memory  # its stub takes no number of steps


def are_apart(read: Sequence[Tensor], written: Sequence[Tensor]) -> bool:
    """Whether no tensor overlaps one that is written, nor those that are written each other; all contiguous.

    Where one tensor is read twice, or lengths differ, the answer may be no though they are.
    """
    spans = sorted([(tensor.data_ptr(), tensor.nbytes) for tensor in (*read, *written)])
    end = 0
    for start, nbytes in spans:
        if start < end:
            return False
        end = start + nbytes
    return True


def without_overlap(collective: Collective, rank: int, inputs: Parts, outputs: Parts) -> Parts:
    """``inputs``, or a copy of them where what is written to ``outputs`` would overwrite them too early."""
    if collective.gives == collective.gets == "tensor" and _start(inputs) == _start(outputs):
        return inputs
    if not _overlap(inputs, outputs) or _in_place(collective, rank, inputs, outputs):
        return inputs
    return inputs.clone() if isinstance(inputs, Tensor) else [part.clone() for part in inputs]


def _in_place(collective: Collective, rank: int, inputs: Parts, outputs: Parts) -> bool:
    """Whether a rank's own part lies in its own place of the whole, and nothing else overlaps."""
    if collective.gives == "tensor" and collective.gets == "parts":
        return _start(inputs) == _start_of_part(outputs, rank) and not _overlap(inputs, _others(outputs, rank))
    if collective.gives == "parts" and collective.gets == "tensor":
        return _start_of_part(inputs, rank) == _start(outputs) and not _overlap(outputs, _others(inputs, rank))
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
    others = spans(other)
    return any(start < stop and begin < end for start, end in spans(one) for begin, stop in others)


def spans(parts: Parts | None) -> list[Span]:
    """Those of the tensors that have any bytes; all are contiguous here."""
    tensors = [parts] if isinstance(parts, Tensor) else parts or ()
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
