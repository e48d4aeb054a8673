"""Operations between ranks; their gradients are the reverse operations between the same ranks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.arrays import Array, as_torch

Step = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def apply_differentiable(call: Step, back: Step, inputs: Sequence[Array]) -> list[Tensor]:
    """Return the results of ``call`` for the inputs; ``back`` computes the inputs' gradients in the backward pass."""
    tensors = [as_torch(value) for value in inputs]
    if needs_gradient(*tensors):
        found: Any = _Differentiated.apply(call, back, *tensors)  # type: ignore[no-untyped-call]
        return list(found)
    return list(call([tensor.detach() for tensor in tensors]))


def needs_gradient(*tensors: Tensor) -> bool:
    """Return whether a gradient of any of these is needed."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


class _Differentiated(torch.autograd.Function):
    """The node of one call in torch's graph."""

    @staticmethod
    def forward(ctx: Any, call: Step, back: Step, *tensors: Tensor) -> Any:
        ctx.back = back
        return tuple(call([tensor.detach() for tensor in tensors]))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, None, *ctx.back([gradient.contiguous() for gradient in gradients])
