"""``tf.nn``: what losses, activations and normalizations are made of. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from typing import Any

from collshim.tensorflow.arithmetic import (
    l2_normalize,
    log_softmax,
    reduce_mean,
    relu,
    sigmoid,
    softmax,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
    square,
    stop_gradient,
    tanh,
    tensor,
)
from collshim.tensorflow.tensor import Tensor, adopt

__all__ = [
    "batch_normalization",
    "l2_normalize",
    "log_softmax",
    "moments",
    "relu",
    "sigmoid",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
    "tanh",
]


def moments(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The mean and the variance over ``axes``."""
    value = tensor(x)
    mean = reduce_mean(value, axes, True)
    variance = reduce_mean(square(value - stop_gradient(mean)), axes, keepdims)
    return reduce_mean(value, axes, keepdims), variance


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Tensor:
    """``scale * (x - mean) / sqrt(variance + variance_epsilon) + offset``, without what is None of these."""
    value = tensor(x)
    center, spread = (tensor(one, None if hasattr(one, "dtype") else value.dtype) for one in (mean, variance))
    factor = (spread + variance_epsilon).rsqrt()
    if scale is not None:
        factor = factor * tensor(scale, None if hasattr(scale, "dtype") else value.dtype)
    shifted = value * factor - center * factor
    return adopt(shifted if offset is None else shifted + tensor(offset, None))
