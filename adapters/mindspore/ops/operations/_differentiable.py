"""Operations between ranks whose gradients are operations between the same ranks, the other way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from collshim.arrays import Array, as_torch

Step = Callable[[Sequence[Tensor]], Sequence[Tensor]]


def differentiated(call: Step, back: Step, inputs: Sequence[Array]) -> list[Tensor]:
    """What ``call`` gives for the inputs; their gradients are what ``back`` gives for those of the results."""
    tensors = [as_torch(value) for value in inputs]
    if is_differentiated(*tensors):
        found: Any = _Differentiated.apply(call, back, *tensors)  # type: ignore[no-untyped-call]
        return list(found)
    return list(call([tensor.detach() for tensor in tensors]))


def is_differentiated(*tensors: Tensor) -> bool:
    """Whether gradients of some of these are asked for."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)


class _Differentiated(torch.autograd.Function):
    """One call."""

    @staticmethod
    def forward(ctx: Any, call: Step, back: Step, *tensors: Tensor) -> Any:
        ctx.back = back
        return tuple(call([tensor.detach() for tensor in tensors]))

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return None, None, *ctx.back([gradient.contiguous() for gradient in gradients])
