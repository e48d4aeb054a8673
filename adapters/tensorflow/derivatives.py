"""Functions whose derivatives are TensorFlow's where torch's differ. Source: TensorFlow 2.21, run eagerly on CPU.

The derivative of a root passes no gradient where none arrives, so that ``tf.where`` can exclude a root of 0. If two
numbers are equal, the first one is the greater and the lesser one. Rounding has no gradient at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from collshim.adapting.slopes import without_gradient

_Function: Any = torch.autograd.Function


def _guarded(
    function: Callable[[torch.Tensor], torch.Tensor], slope: Callable[[torch.Tensor], torch.Tensor]
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return ``function`` with ``slope`` of its result as its derivative, and 0 where no gradient arrives."""

    class Guarded(_Function):  # type: ignore[misc]
        generate_vmap_rule = True

        @staticmethod
        def forward(x: torch.Tensor) -> torch.Tensor:
            return function(x)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: torch.Tensor) -> None:
            ctx.save_for_backward(output)

        @staticmethod
        def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
            (result,) = ctx.saved_tensors
            return torch.where(gradient == 0, torch.zeros_like(gradient), gradient * slope(result).conj())

    def compute(x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = Guarded.apply(x) if x.requires_grad else function(x)
        return found

    compute.__name__ = getattr(function, "__name__", "function")
    return compute


sqrt_of = _guarded(torch.sqrt, lambda y: 0.5 / y)
rsqrt_of = _guarded(torch.rsqrt, lambda y: -0.5 * y**3)
reciprocal_of = _guarded(torch.reciprocal, lambda y: -y * y)


floor_divided = without_gradient(torch.floor_divide)
