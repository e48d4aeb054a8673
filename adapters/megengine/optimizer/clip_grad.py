"""Clipping of gradients in place (source: MegEngine 1.13.0, ``megengine.optimizer.clip_grad``)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from collshim.megengine.functional.elemwise import clip, minimum
from collshim.megengine.functional.math import norm
from collshim.megengine.functional.tensor import concat
from collshim.megengine.tensor import Tensor

__all__ = ["clip_grad_norm", "clip_grad_value"]


def clip_grad_norm(tensors: Tensor | Iterable[Tensor], max_norm: float, ord: float = 2.0) -> Tensor:
    """Scale the gradients down so that their norm as a single vector is at most ``max_norm``; return the old norm."""
    found = [tensor for tensor in _listed(tensors) if tensor.grad is not None]
    if not found:
        return Tensor(0.0)
    total: Any = norm(concat([tensor.grad.flatten() for tensor in found]), ord)
    scale = minimum(max_norm / (total + 1e-6), 1)
    for tensor in found:
        tensor.grad._reset(tensor.grad * scale)
    return total  # type: ignore[no-any-return]


def clip_grad_value(tensors: Tensor | Iterable[Tensor], lower: float, upper: float) -> None:
    """Clip all elements of the gradients to the range from ``lower`` to ``upper``."""
    for tensor in _listed(tensors):
        if tensor.grad is not None:
            tensor.grad._reset(clip(tensor.grad, lower, upper))


def _listed(tensors: Any) -> list[Any]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)
