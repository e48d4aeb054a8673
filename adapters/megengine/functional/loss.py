"""Losses (source: MegEngine 1.13.0, ``megengine.functional.loss``).

``reduction`` is ``"mean"``, ``"sum"`` or ``"none"``; ValueError for anything else.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import torch
from torch.nn import functional as F

from collshim.errors import ArgumentValueError
from collshim.megengine.core.tensor import slopes
from collshim.megengine.core.tensor.values import Value, operands, require
from collshim.megengine.tensor import computes

__all__ = ["binary_cross_entropy", "cross_entropy", "hinge_loss", "l1_loss", "square_loss"]


def reduces(loss: Callable[..., Value]) -> Callable[..., Any]:
    """Decorate a loss of torch tensors so that it takes and returns ``Tensor`` objects, and is reduced.

    As in MegEngine, only the keyword ``reduction`` has an effect: without it, the result is the mean.
    """
    elementwise = computes(loss)

    @wraps(loss)
    def compute(*args: Any, **kwargs: Any) -> Any:
        reduction = kwargs.get("reduction", "mean")
        if reduction not in ("mean", "sum", "none"):
            raise ArgumentValueError(f"{reduction} is not a valid value for reduction: should be mean, sum or none")
        found = elementwise(*args, **kwargs)
        return found.mean() if reduction == "mean" else found.sum() if reduction == "sum" else found

    return compute


@reduces
def l1_loss(pred: Any, label: Any, reduction: str = "mean") -> Value:
    """Return the absolute difference between prediction and label, elementwise and then reduced."""
    first, second = operands(pred, label)
    return slopes.abs_of(first - second)


@reduces
def square_loss(pred: Any, label: Any, reduction: str = "mean") -> Value:
    """Return the squared difference between prediction and label, elementwise and then reduced."""
    first, second = operands(pred, label)
    return (first - second) ** 2


@reduces
def cross_entropy(
    pred: Value, label: Value, axis: int = 1, with_logits: bool = True, label_smooth: float = 0, reduction: str = "mean"
) -> Value:
    """Return the cross entropy: minus the logarithm of the predicted probability of the class in ``label``.

    Args:
        pred: one number per class along ``axis``: logits, or probabilities if ``with_logits`` is False.
        label: the numbers of the classes, without that axis.
        axis: the axis of the classes.
        with_logits: whether ``pred`` are logits.
        label_smooth: the fraction of the label's probability that is spread evenly over all classes.
        reduction: see the module.
    """
    if pred.dim() not in (0, 1) and pred.dim() != label.dim() + 1:
        raise ArgumentValueError(f"label has {label.dim()} axes, should have {pred.dim() - 1}: one less than pred")
    scale = torch.logsumexp(pred, axis) if with_logits else torch.zeros((), device=pred.device)
    terms = pred if with_logits else pred.log()
    own = torch.gather(terms, axis, label.long().unsqueeze(axis)).squeeze(axis)
    if label_smooth:
        own = (1 - label_smooth) * own + label_smooth * terms.mean(axis)
    return scale - own


@reduces
def binary_cross_entropy(pred: Any, label: Any, with_logits: bool = True, reduction: str = "mean") -> Value:
    """Return the binary cross entropy; ``pred`` and ``label`` are about the probability of class 1."""
    first, second = operands(pred, label, floats=True)
    if with_logits:
        return -(second * F.logsigmoid(first) + (1 - second) * F.logsigmoid(-first))
    return -(second * first.log() + (1 - second) * (1 - first).log())


@reduces
def hinge_loss(pred: Any, label: Any, norm: str = "L1", reduction: str = "mean") -> Value:
    """Return the hinge loss, max(0, 1 - pred * label) with labels -1 or 1, summed along axis 1; "L2" sums squares."""
    require(norm in ("L1", "L2"), f"hinge_loss: norm is {norm!r}, should be L1 or L2")
    first, second = operands(pred, label)
    lack = F.relu(1 - first * second)
    return (lack if norm == "L1" else lack**2).sum(1)
