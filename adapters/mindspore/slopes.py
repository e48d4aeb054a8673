"""Functions whose derivatives differ from torch's at a bound, or if two operands are equal (MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["cross_entropy_of_rows", "hardswish", "leaky_relu", "limited", "relu6"]


def limited(x: Any, low: Any, high: Any) -> Any:
    """Return ``x`` limited to these bounds, either of which may be None, in its dtype.

    At a bound, the derivative is 0.5.
    """
    if low is not None:
        x = torch.maximum(x, torch.as_tensor(low).to(x.dtype))
    return x if high is None else torch.minimum(x, torch.as_tensor(high).to(x.dtype))


def relu6(x: Any) -> Any:
    """Return ``min(max(x, 0), 6)``; the derivative at 6 is 1."""
    return torch.clamp(torch.relu(x), max=6)


def hardswish(x: Any) -> Any:
    """Return ``x * relu6(x + 3) / 6``; the derivative at -3 is -0.5, and at 3 it is 1.5."""
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return (wide * torch.clamp(wide + 3, 0, 6) / 6).to(x.dtype)


def leaky_relu(x: Any, alpha: float) -> Any:
    """Return ``x`` if it is positive, otherwise ``alpha * x``; the derivative at 0 is the mean of both."""
    return (torch.maximum if alpha <= 1 else torch.minimum)(alpha * x, x)


def cross_entropy_of_rows(logits: Any, labels: Any) -> Any:
    """Return the cross entropy of each row of ``softmax(logits)`` and probabilities.

    Its gradient is ``softmax(logits) - labels``, even if the labels of a row do not add up to 1; labels have none.
    """
    own = labels.detach()
    losses = -(own * torch.log_softmax(logits, -1)).sum(-1)
    missing = (1 - own.sum(-1)) * torch.logsumexp(logits, -1)
    return losses + (missing - missing.detach())
