"""``oneflow.nn.functional``: torch's, except functions with other arguments or defaults in OneFlow 0.9.0."""

from __future__ import annotations

from typing import Any

from torch.nn import functional

from collshim.adapting import fall_through
from collshim.oneflow._absent import REFUSED, below
from collshim.oneflow.framework.tensor import adopt


def softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Any:
    """Return the softmax along ``dim``, by default the last dimension."""
    return functional.softmax(input, -1 if dim is None else dim, dtype=dtype)


def log_softmax(input: Any, dim: int | None = None, dtype: Any = None) -> Any:
    """Return the logarithm of ``softmax``."""
    return functional.log_softmax(input, -1 if dim is None else dim, dtype=dtype)


def one_hot(input: Any, num_classes: int = -1, on_value: float = 1, off_value: float = 0) -> Any:
    """Return a tensor with a new last dimension: ``on_value`` at each index of ``input``, ``off_value`` elsewhere.

    The new dimension has length ``num_classes``; -1 means as long as needed. The result is int64 if both values are
    ints, and otherwise float32.
    """
    is_whole = isinstance(on_value, int) and isinstance(off_value, int)
    where = functional.one_hot(input.long(), num_classes).bool()
    result = where.long() if is_whole else where.float()
    return adopt(result * (on_value - off_value) + off_value)


def sparse_softmax_cross_entropy(labels: Any, logits: Any) -> Any:
    """Return the cross entropy of each row of ``logits`` with its label, a class number; not reduced."""
    return adopt(functional.cross_entropy(logits, labels.long(), reduction="none"))


def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Return the mean squared error, or with ``reduction`` the sum or the single errors."""
    return adopt(functional.mse_loss(input, target, reduction=reduction))


def l1_loss(input: Any, target: Any, reduction: str = "mean") -> Any:
    """Return the mean absolute error, or with ``reduction`` the sum or the single errors."""
    return adopt(functional.l1_loss(input, target, reduction=reduction))


def smooth_l1_loss(input: Any, target: Any, beta: float = 1.0, reduction: str = "mean") -> Any:
    """Return torch's smooth L1 loss; ``beta`` comes before ``reduction``."""
    return adopt(functional.smooth_l1_loss(input, target, reduction=reduction, beta=beta))


def cross_entropy(
    input: Any,
    target: Any,
    weight: Any = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:
    """Return torch's cross entropy."""
    more: Any = {"ignore_index": ignore_index, "reduction": reduction, "label_smoothing": label_smoothing}
    return adopt(functional.cross_entropy(input, target, weight, **more))


def kl_div(input: Any, target: Any, log_target: bool = False, reduction: str = "mean") -> Any:
    """Return torch's Kullback-Leibler divergence; ``log_target`` comes before ``reduction``."""
    return adopt(functional.kl_div(input, target, reduction=reduction, log_target=log_target))


def binary_cross_entropy(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    """Return torch's cross entropy of probabilities."""
    return adopt(functional.binary_cross_entropy(input, target, weight, reduction=reduction))


def binary_cross_entropy_with_logits(
    input: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean"
) -> Any:
    """Return torch's cross entropy of logits; ``pos_weight`` comes before ``reduction``."""
    more: Any = {"pos_weight": pos_weight, "reduction": reduction}
    return adopt(functional.binary_cross_entropy_with_logits(input, target, weight, **more))


def quick_gelu(input: Any) -> Any:
    """Return ``x * sigmoid(1.702 x)``."""
    return input * (1.702 * input).sigmoid()


__getattr__ = fall_through.names(__name__, [functional], below(REFUSED, "nn.functional"))
