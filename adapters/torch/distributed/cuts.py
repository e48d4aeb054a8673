"""Collectives that cut torch's graph: a backward pass through their outputs warns, as in torch.

torch 2.13's operators under ``torch.distributed`` have no gradient. If an operator returns the tensors that it wrote,
torch's dispatcher makes a backward pass through them warn, and the gradient passes as if nothing had been written. The
other operators do not warn.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor


def cut(operator: str, outputs: Sequence[Any], inputs: Sequence[Any] = ()) -> None:
    """Make a backward pass through ``outputs`` warn if gradients are recorded and ``outputs`` or ``inputs`` need one.

    Args:
        operator: torch's name of the collective; the warning begins with it.
        outputs: the tensors that are written. A tensor that needs no gradient needs one afterwards, but does not pass
            it on. A view that needs no gradient stays unchanged: torch's C++ changes only the view, but Python could
            only change its base.
        inputs: the tensors that are only read.
    """
    if not torch.is_grad_enabled():
        return
    for array in (*outputs, *inputs):
        if isinstance(array, Tensor) and array.requires_grad:
            break
    else:
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
    """The node of a collective in the graph, if its outputs were not in the graph before."""

    @staticmethod
    def forward(ctx: Any, operator: str, outputs: list[Tensor], *tensors: Tensor) -> tuple[Tensor, ...]:
        """Put the outputs into the graph; a different function writes them."""
        ctx.operator, ctx.count = operator, len(tensors)
        ctx.mark_dirty(*outputs)
        return tuple(outputs)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, ...]:
        """Warn, and pass no gradient on."""
        _warn(ctx.operator)
        return (None, None, *[None] * ctx.count)


def _warn(operator: str, gradient: Tensor | None = None) -> None:
    warnings.warn(
        f"c10d::{operator}: an autograd kernel was not registered to the Autograd key(s), so a backward through this "
        "collective does not reach the other ranks. The collectives of torch.distributed.nn.functional have gradients; "
        "under torch.no_grad(), or with detached tensors, there is no warning.",
        UserWarning,
        stacklevel=2,
    )
