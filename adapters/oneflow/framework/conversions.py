"""The two conversions between a rank's tensor and the whole tensor of all ranks, with their gradients."""

from __future__ import annotations

from typing import Any

import torch

from collshim.oneflow.framework import parts
from collshim.oneflow.framework.layouts import BROADCAST, PARTIAL, Layouts, sums
from collshim.oneflow.framework.tensor import plain
from collshim.oneflow.global_tensors import placement as Placement


def whole_of_all(local: torch.Tensor, place: Placement, layouts: Layouts) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the whole tensor of all ranks' parts, and this rank's summand if it is a sum; all ranks call this."""
    made: tuple[torch.Tensor, torch.Tensor] = _ToGlobal.apply(local, place, layouts)  # type: ignore[no-untyped-call]
    return made


def part_here(whole: torch.Tensor, own: torch.Tensor, place: Placement, layouts: Layouts) -> torch.Tensor:
    """Return this rank's part of a whole tensor; ``own`` is this rank's summand if the tensor is a sum."""
    part: torch.Tensor = _ToLocal.apply(whole, own, place, layouts)  # type: ignore[no-untyped-call]
    return part


class _ToGlobal(torch.autograd.Function):
    """The function of ``whole_of_all``."""

    @staticmethod
    def forward(ctx: Any, local: torch.Tensor, place: Placement, layouts: Layouts) -> Any:
        ctx.place, ctx.layouts, ctx.shape = place, layouts, local.shape
        found, own = parts.everyones(local, place), parts.position(place)
        joins = [parts.whole_of(layout, local.dtype) for layout in layouts]
        whole = parts.put_together(found, place.ranks.shape, joins).clone()
        for dim in sums(layouts):
            joins[dim] = parts.pick(own[dim] if own else 0)
        part = parts.put_together(found, place.ranks.shape, joins).clone()
        ctx.mark_non_differentiable(part)
        return whole, part

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        gradient, own = plain(gradients[0]), parts.position(ctx.place)
        if own is None or any(index for index, layout in zip(own, ctx.layouts, strict=True) if layout == BROADCAST):
            return gradient.new_zeros(ctx.shape), None, None
        return parts.part_of(gradient, ctx.place, ctx.layouts), None, None


class _ToLocal(torch.autograd.Function):
    """The function of ``part_here``."""

    @staticmethod
    def forward(ctx: Any, whole: torch.Tensor, own: torch.Tensor, place: Placement, layouts: Layouts) -> torch.Tensor:
        ctx.place, ctx.layouts = place, layouts
        return parts.part_of(own, place, layouts).clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        gradient, own = plain(gradients[0]), parts.position(ctx.place)
        joins = [parts.whole_of(layout, gradient.dtype) for layout in ctx.layouts]
        for dim, layout in enumerate(ctx.layouts):
            if layout == PARTIAL:  # each part has its own rank's gradient
                joins[dim] = parts.pick(own[dim] if own else 0)
            elif layout == BROADCAST:
                joins[dim] = parts.sum_in(gradient.dtype)
        whole = parts.put_together(parts.everyones(gradient, ctx.place), ctx.place.ranks.shape, joins)
        return whole, None, None, None
