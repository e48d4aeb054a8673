"""Results that go to the memory that inputs lie in: which are safe, and a copy of the inputs where they are not.

In place is safe where a rank's result replaces exactly its own input (all_reduce, reduce, broadcast), and where its
own part lies in its own place of the whole (all_gather, gather, scatter, reduce_scatter): nobody else reads or writes
those elements. Any other overlap would overwrite what is still to be sent.
"""

from __future__ import annotations

from torch import Tensor

from collshim.layout import Parts

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
