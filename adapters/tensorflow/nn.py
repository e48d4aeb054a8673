"""``tf.nn``: what losses and activations are made of."""

from __future__ import annotations

from collshim.tensorflow.arithmetic import (
    l2_normalize,
    log_softmax,
    relu,
    sigmoid,
    softmax,
    softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
    tanh,
)

__all__ = [
    "l2_normalize",
    "log_softmax",
    "relu",
    "sigmoid",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "sparse_softmax_cross_entropy_with_logits",
    "tanh",
]
