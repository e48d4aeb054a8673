"""``tf.nn``: functions for losses, activations and normalizations. Source: TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

from typing import Any

import torch

from collshim.errors import ArgumentTypeError, ArgumentValueError
from collshim.tensorflow.activations import (
    bias_add,
    dropout,
    elu,
    embedding_lookup,
    gelu,
    l2_loss,
    leaky_relu,
    relu6,
    selu,
    sigmoid_cross_entropy_with_logits,
    silu,
    softplus,
    softsign,
    swish,
)
from collshim.tensorflow.arithmetic import (
    l2_normalize,
    log_softmax,
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
from collshim.tensorflow.convolutions import (
    avg_pool,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    conv1d,
    conv1d_transpose,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    conv_transpose,
    convolution,
    depthwise_conv2d,
    max_pool,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from collshim.tensorflow.distribute import context, stack
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.ordering import top_k
from collshim.tensorflow.reductions import reduce_mean
from collshim.tensorflow.tensor import Tensor, adopt, dtype_name

__all__ = [
    "avg_pool",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_normalization",
    "bias_add",
    "compute_average_loss",
    "conv1d",
    "conv1d_transpose",
    "conv2d",
    "conv2d_transpose",
    "conv3d",
    "conv3d_transpose",
    "conv_transpose",
    "convolution",
    "depthwise_conv2d",
    "dropout",
    "elu",
    "embedding_lookup",
    "gelu",
    "l2_loss",
    "l2_normalize",
    "leaky_relu",
    "log_softmax",
    "max_pool",
    "max_pool1d",
    "max_pool2d",
    "max_pool3d",
    "moments",
    "relu",
    "relu6",
    "scale_regularization_loss",
    "selu",
    "sigmoid",
    "sigmoid_cross_entropy_with_logits",
    "silu",
    "softmax",
    "softmax_cross_entropy_with_logits",
    "softplus",
    "softsign",
    "sparse_softmax_cross_entropy_with_logits",
    "swish",
    "tanh",
    "top_k",
]


@checked
def moments(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Return the mean and the variance over ``axes``."""
    value = tensor(x)
    mean = reduce_mean(value, axes, True)
    variance = reduce_mean(square(value - stop_gradient(mean)), axes, keepdims)
    return reduce_mean(value, axes, keepdims), variance


@checked
def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Tensor:
    """Return ``scale * (x - mean) / sqrt(variance + variance_epsilon) + offset``; scale and offset may be None."""
    value = tensor(x)
    center, spread = (tensor(one, None if hasattr(one, "dtype") else value.dtype) for one in (mean, variance))
    factor = (spread + variance_epsilon).rsqrt()
    if scale is not None:
        factor = factor * tensor(scale, None if hasattr(scale, "dtype") else value.dtype)
    shifted = value * factor - center * factor
    return adopt(shifted if offset is None else shifted + tensor(offset, None))


@checked
def compute_average_loss(per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None) -> Tensor:
    """Return the sum of a replica's losses, divided by the number of examples on all replicas.

    Its sum over the replicas is the mean over the global batch. It is float64 for integers, and 0 if there are no
    examples.

    Args:
        per_example_loss: losses with at least one axis; the first is the axis of examples.
        sample_weight: factors of the losses; if they lack the losses' last axis, they are broadcast along it.
        global_batch_size: an integer; by default the length of the first axis times the number of replicas.

    Raises:
        ValueError: the loss is a scalar, or the batch size has axes.
        TypeError: the batch size is not an integer.
        InvalidArgumentError: the batch size is negative, or the weights do not fit.
        RuntimeError: this is called across replicas without a batch size.
    """
    losses = tensor(per_example_loss)
    if losses.dim() == 0:
        raise ArgumentValueError(
            "Invalid value passed for `per_example_loss`. Expected a tensor with at least rank 1. Received "
            f"per_example_loss={per_example_loss} with rank 0"
        )
    total = _weighted(losses, sample_weight).sum()
    if global_batch_size is None:
        count = losses.shape[0] * _replicas_for("compute_average_loss")
    else:
        count = _batch_size(global_batch_size)
    average: Tensor = adopt(total) / count if count else adopt(torch.zeros_like(total))
    return average


@checked
def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """Return the sum of the losses, divided by the number of replicas.

    Raises:
        RuntimeError: this is called across replicas.
    """
    share: Tensor = adopt(tensor(regularization_loss).sum()) / _replicas_for("scale_regularization_loss")
    return share


def _replicas_for(function: str) -> int:
    if context.has_strategy() and context.in_cross_replica_context():
        raise stack.ContextError(
            f"You are calling `{function}` in cross replica context, while it was expected to be called in replica "
            "context."
        )
    return context.get_strategy().num_replicas_in_sync


def _weighted(losses: torch.Tensor, sample_weight: Any) -> torch.Tensor:
    if sample_weight is None:
        return losses
    weights = tensor(sample_weight).to(torch.float32)
    if weights.dim() == losses.dim() + 1 and weights.shape[-1] == 1:
        weights = weights.squeeze(-1)
    elif weights.dim() == losses.dim() - 1:
        weights = weights.unsqueeze(-1)
    try:
        return (losses.to(torch.float32) * weights).to(losses.dtype)
    except RuntimeError as error:
        raise invalid_argument(f"Incompatible shapes: {list(losses.shape)} vs. {list(weights.shape)}") from error


def _batch_size(size: Any) -> int:
    found = tensor(size)
    if found.is_floating_point() or found.dtype is torch.bool:
        raise ArgumentTypeError(
            f'global_batch_size must be an integer. Expected "x" to be integer type. Found: tensor of dtype '
            f"{dtype_name(found.dtype)}"
        )
    if found.dim():
        raise ArgumentValueError(f"global_batch_size must be scalar. Expected scalar shape, saw shape: {size}.")
    if found.item() < 0:
        raise invalid_argument(f"global_batch_size must be non-negative, is {found.item()}")
    return int(found)
