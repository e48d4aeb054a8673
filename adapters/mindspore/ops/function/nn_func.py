"""Activations and losses of ``mindspore.ops`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch.nn import functional

from collshim.mindspore.common.dtype import torch_dtype
from collshim.mindspore.tensor import Tensor, wrap

__all__ = [
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "gelu",
    "log_softmax",
    "mse_loss",
    "relu",
    "sigmoid",
    "softmax",
    "tanh",
]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``max(input, 0)``; with ``inplace``, in the input's memory."""
    return cast(Tensor, wrap(functional.relu(input, inplace)))


def sigmoid(input: Tensor) -> Tensor:
    """Return ``1 / (1 + exp(-input))``."""
    return cast(Tensor, wrap(torch.sigmoid(input)))


def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent."""
    return cast(Tensor, wrap(torch.tanh(input)))


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return ``input`` times the normal distribution function at ``input``; ``approximate``: "none" or "tanh"."""
    return cast(Tensor, wrap(functional.gelu(input, approximate=approximate)))


def softmax(input: Tensor, axis: int = -1, *, dtype: Any = None) -> Tensor:
    """Return the exponentials divided by their sum along ``axis``."""
    return cast(Tensor, wrap(torch.softmax(input, axis, None if dtype is None else torch_dtype(dtype))))


def log_softmax(logits: Tensor, axis: int = -1) -> Tensor:
    """Return the logarithm of ``softmax``."""
    return cast(Tensor, wrap(torch.log_softmax(logits, axis)))


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of ``softmax(input)``, (N, C, ...), and target classes (N, ...) or probabilities."""
    labels = target if target.is_floating_point() else target.long()
    smoothing: Any = {"reduction": reduction, "label_smoothing": label_smoothing, "ignore_index": ignore_index}
    return cast(Tensor, wrap(functional.cross_entropy(input, labels, weight, **smoothing)))


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """Return the squared error, or its mean or sum."""
    squares = torch.square(input - target)
    return cast(Tensor, wrap(squares if reduction == "none" else getattr(squares, reduction)()))


def binary_cross_entropy_with_logits(
    input: Tensor, target: Tensor, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """Return the binary cross entropy of ``sigmoid(input)`` and ``target``."""
    arguments: Any = {"reduction": reduction, "pos_weight": pos_weight}
    return cast(Tensor, wrap(functional.binary_cross_entropy_with_logits(input, target, weight, **arguments)))
