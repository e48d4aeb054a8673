"""Memory for a collective's result, if its caller gave none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from collshim.calls.call import Call
from collshim.calls.collective import Shape
from collshim.layout import Parts


def allocator(calls: Sequence[Call], rank: int, device: torch.device) -> Callable[[], Parts | None]:
    """Return a function that makes memory for the result of ``rank``, of calls that agree; None if it gets none.

    Unequal parts come as views of one flat buffer, so that they travel without a copy.
    """
    call, collective = calls[rank], calls[rank].collective
    dtype = next((call.dtype for call in calls if call.dtype is not None), torch.float32)
    if not collective.gets_on(rank, call.root):
        return _nothing
    if collective.gets == "parts" and call.is_ragged:
        shapes = call.expects or [_known(other.sent(rank)) for other in calls]
        lengths = [torch.Size(shape).numel() for shape in shapes]
        return partial(_pieces, shapes, lengths, partial(torch.empty, sum(lengths), dtype=dtype, device=device))
    giver = call if collective.givers == "all" else calls[call.root or 0]
    shape = collective.result_shape(_known(giver.sent(rank)), len(calls))
    return partial(torch.empty, shape, dtype=dtype, device=device)


def _nothing() -> None:
    """Memory for a rank that gets no result."""


def _pieces(shapes: Sequence[Shape], lengths: list[int], fresh: Callable[[], Tensor]) -> list[Tensor]:
    return [piece.view(shape) for piece, shape in zip(fresh().split(lengths), shapes, strict=True)]


def _known(shape: Shape | None) -> Shape:
    if shape is None:
        raise AssertionError("the shape of a rank that gives data is always known")  # the communicator excludes it
    return shape
