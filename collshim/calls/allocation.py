"""Memory for a collective's result where its caller gave none."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from collshim.calls.call import Call
from collshim.calls.collective import Shape
from collshim.layout import Parts, cut


def allocate(calls: Sequence[Call], rank: int, device: torch.device) -> Parts | None:
    """Fresh memory for ``rank``'s result of calls that agree; None where it gets none.

    Unequal parts come as views of one flat buffer, so that they travel without a copy.
    """
    call, collective = calls[rank], calls[rank].collective
    dtype = next((call.dtype for call in calls if call.dtype is not None), torch.float32)
    if not collective.gets_on(rank, call.root):
        return None
    if collective.gets == "parts" and call.is_ragged:
        return _pieces(call.expects or [_known(other.sent(rank)) for other in calls], dtype, device)
    giver = call if collective.givers == "all" else calls[call.root or 0]
    shape = collective.result_shape(_known(giver.sent(rank)), len(calls))
    return torch.empty(shape, dtype=dtype, device=device)


def _pieces(shapes: Sequence[Shape], dtype: torch.dtype, device: torch.device) -> list[Tensor]:
    count = sum(torch.Size(shape).numel() for shape in shapes)
    return cut(torch.empty(count, dtype=dtype, device=device), shapes)


def _known(shape: Shape | None) -> Shape:
    if shape is None:
        raise AssertionError("the shape of a rank that gives data is always known")  # the communicator excludes it
    return shape
