"""Functions with MegEngine's derivatives, which differ from torch's. Source: MegEngine 1.13.0, run on the CPU.

At 0, the slope of ``abs`` is -1. Of two equal numbers, the first counts as both the greater and the lesser. In a
reduction, every element that equals the extreme receives the whole gradient. Rounding and floor division have no
gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from collshim.adapting.slopes import first_if_equal, without_gradient
from collshim.megengine.core.tensor.values import Value

_Function: Any = torch.autograd.Function


def abs_of(x: Value) -> Value:
    """Return the absolute value of ``x``."""
    return torch.where(x > 0, x, 0 - x) if x.requires_grad else torch.abs(x)


maximum, minimum = first_if_equal(torch.maximum), first_if_equal(torch.minimum)


class _Extreme(_Function):  # type: ignore[misc]
    """The extreme elements along axes, with the whole gradient for each of several equal ones."""

    @staticmethod
    def forward(ctx: Any, inp: Value, function: Callable[..., Value], axes: tuple[int, ...], keepdims: bool) -> Value:
        found = function(inp, axes, keepdim=True)
        ctx.save_for_backward(inp == found)
        ctx.kept = found.shape
        return found if keepdims else found.squeeze(axes)

    @staticmethod
    def backward(ctx: Any, gradient: Value) -> Any:
        (equals,) = ctx.saved_tensors
        return gradient.reshape(ctx.kept) * equals, None, None, None


def extreme(function: Callable[..., Value], inp: Value, axes: tuple[int, ...], keepdims: bool) -> Value:
    """Return ``torch.amax`` or ``torch.amin`` along axes."""
    found: Value = _Extreme.apply(inp, function, axes, keepdims)
    return found


class _MaxPool(_Function):  # type: ignore[misc]
    """The greatest element of each window, with the whole gradient for each of several equal ones."""

    @staticmethod
    def forward(ctx: Any, inp: Value, size: Any, steps: Any, padding: Any) -> Value:
        found = F.max_pool2d(inp, size, steps, padding)
        ctx.save_for_backward(inp, found)
        ctx.settings = size, steps, padding
        return found

    @staticmethod
    def backward(ctx: Any, gradient: Value) -> Any:
        (inp, found), (size, steps, padding) = ctx.saved_tensors, ctx.settings
        count, places = found.shape[1], found[0, 0].numel()
        around = F.pad(inp, (padding[1], padding[1], padding[0], padding[0]), value=-float("inf"))
        parts = F.unfold(around, size, stride=steps).reshape(-1, count, size[0] * size[1], places)
        shares = (parts == found.reshape(-1, count, 1, places)) * gradient.reshape(-1, count, 1, places)
        whole = F.fold(shares.reshape(-1, count * size[0] * size[1], places), around.shape[-2:], size, stride=steps)
        height, width = inp.shape[-2:]
        return whole[..., padding[0] : padding[0] + height, padding[1] : padding[1] + width], None, None, None


def max_pool2d(inp: Value, size: Any, steps: Any, padding: Any) -> Value:
    """Return the greatest element of each window of (N, C, H, W)."""
    if not inp.requires_grad or inp.dim() != 4:
        return F.max_pool2d(inp, size, steps, padding)
    found: Value = _MaxPool.apply(inp, size, steps, padding)
    return found


ceil, floor, sign = without_gradient(torch.ceil), without_gradient(torch.floor), without_gradient(torch.sign)
floor_divide = without_gradient(torch.floor_divide)
