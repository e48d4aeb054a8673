"""Allocate memory for a collective's result if its caller passed none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from collshim.calls.call import Call
from collshim.calls.collective import Shape
from collshim.calls.plan import Plan
from collshim.layout import Parts


def allocator(calls: Sequence[Call], rank: int, device: torch.device) -> Callable[[], Parts | None]:
    """Return a function that allocates the result of ``rank`` for calls that agree; it returns None if there is none.

    Parts of unequal shapes are views of one flat buffer, so that they are transferred without a copy.
    """
    call, collective = calls[rank], calls[rank].collective
    dtype = next((call.dtype for call in calls if call.dtype is not None), torch.float32)
    if not collective.gets_on(rank, call.root):
        return _allocate_nothing
    if collective.gets == "parts" and call.is_ragged:
        shapes = call.expects or [_require_known(other.sent(rank)) for other in calls]
        lengths = [torch.Size(shape).numel() for shape in shapes]
        return partial(_allocate_parts, shapes, lengths, partial(torch.empty, sum(lengths), dtype=dtype, device=device))
    giver = call if collective.givers == "all" else calls[call.root or 0]
    shape = collective.result_shape(_require_known(giver.sent(rank)), len(calls))
    return partial(torch.empty, shape, dtype=dtype, device=device)


def _allocate_nothing() -> None:
    """Return None for a rank that receives no result."""


def _allocate_parts(shapes: Sequence[Shape], lengths: list[int], allocate: Callable[[], Tensor]) -> list[Tensor]:
    return [piece.view(shape) for piece, shape in zip(allocate().split(lengths), shapes, strict=True)]


def _require_known(shape: Shape | None) -> Shape:
    if shape is None:
        raise AssertionError("the shape of a rank with an input is always known")  # the communicator excludes it
    return shape


def fresh(plan: Plan) -> Callable[[], Tensor]:
    """Return a function that allocates a result of known shape; ``empty_like`` of one element is fastest."""
    element = torch.empty((), dtype=plan.call.dtype, device=plan.device)
    return partial(torch.empty_like, element.expand(plan.shape or ()))
