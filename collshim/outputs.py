"""Where a collective's result goes when its caller gave no place for it."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from collshim.call import Call, Shape
from collshim.layout import Parts, cut


def allocate(calls: Sequence[Call], rank: int, device: torch.device) -> Parts | None:
    """Fresh memory for ``rank``'s result of calls that agree; None where it gets none.

    Unequal parts come as views of one flat buffer, so that they travel without a copy.
    """
    call, dtype = calls[rank], _dtype(calls)
    if call.op == "barrier" or (call.op in ("reduce", "gather") and call.root != rank):
        return None
    if call.op in ("all_gather", "gather"):
        return _gathered(calls, rank, dtype, device)
    if call.op == "all_to_all" and call.sends is not None:
        return _pieces(call.expects or [_known(other.sent(rank)) for other in calls], dtype, device)
    if call.op == "all_to_all":
        return torch.empty((len(calls), *_known(call.shape)), dtype=dtype, device=device)
    return torch.empty(_single(calls, rank), dtype=dtype, device=device)


def _single(calls: Sequence[Call], rank: int) -> Shape:
    call = calls[rank]
    if call.op in ("broadcast", "scatter"):
        return _known(calls[call.root or 0].sent(rank))
    return _known(call.sent(rank) if call.op == "reduce_scatter" else call.shape)


def _gathered(calls: Sequence[Call], rank: int, dtype: torch.dtype, device: torch.device) -> Parts:
    if calls[rank].expects is None:
        return torch.empty((len(calls), *_known(calls[rank].shape)), dtype=dtype, device=device)
    return _pieces([_known(other.shape) for other in calls], dtype, device)


def _pieces(shapes: Sequence[Shape], dtype: torch.dtype, device: torch.device) -> list[Tensor]:
    count = sum(torch.Size(shape).numel() for shape in shapes)
    return cut(torch.empty(count, dtype=dtype, device=device), shapes)


def _dtype(calls: Sequence[Call]) -> torch.dtype:
    return next((call.dtype for call in calls if call.dtype is not None), torch.float32)


def _known(shape: Shape | None) -> Shape:
    if shape is None:
        raise AssertionError("the shape of a rank that gives data is always known")  # the communicator excludes it
    return shape
