"""Collectives that cut torch's graph: a backward through what they wrote warns, as torch's own does.

torch 2.13's operators under ``torch.distributed`` have no gradient. Its dispatcher lets those that return what they
wrote warn in a backward, and hands the gradient on as if nothing had been written; the others say nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor


def cut(operator: str, outputs: Sequence[Any], inputs: Sequence[Any] = ()) -> None:
    """Let a backward through ``outputs`` warn, if they or ``inputs`` need a gradient, and gradients are recorded.

    Args:
        operator: torch's name of the collective, which the warning begins with.
        outputs: what is written. One that needs no gradient needs one afterwards, and hands none on.
        inputs: what is read besides.
    """
    if not torch.is_grad_enabled():
        return
    tensors = [array for array in (*outputs, *inputs) if isinstance(array, Tensor)]
    if not any(tensor.requires_grad for tensor in tensors):
        return
    fresh: list[Tensor] = []
    for output in outputs:
        if not isinstance(output, Tensor) or not (output.is_floating_point() or output.is_complex()):
            continue
        if output.requires_grad:
            output.register_hook(partial(_warn, operator))
        elif not output._is_view() and not output.is_inference():
            fresh.append(output)
    if fresh:
        WarnNotImplemented.apply(operator, fresh, *fresh, *inputs)  # type: ignore[no-untyped-call]


class WarnNotImplemented(torch.autograd.Function):
    """The place of a collective in the graph, if its outputs were not in it before."""

    @staticmethod
    def forward(ctx: Any, operator: str, outputs: list[Tensor], *tensors: Tensor) -> tuple[Tensor, ...]:
        """Nothing: the collective writes the outputs."""
        ctx.operator, ctx.count = operator, len(tensors)
        ctx.mark_dirty(*outputs)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, ...]:
        """No gradient, and a warning."""
        _warn(ctx.operator)
        return (None, None, *[None] * ctx.count)


def _warn(operator: str, gradient: Tensor | None = None) -> None:
    warnings.warn(
        f"c10d::{operator}: an autograd kernel was not registered to the Autograd key(s), so a backward through this "
        "collective hands on the gradient of the rank alone, as if there were none. The collectives of "
        "torch.distributed.nn.functional have gradients; under torch.no_grad() or on detached tensors nothing warns.",
        UserWarning,
        stacklevel=2,
    )
