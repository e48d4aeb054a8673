"""Layers without parameters, normalizations and losses (MegEngine 1.13.0, ``megengine.functional.nn``)."""

from __future__ import annotations

from collshim.adapting.absent import saying
from collshim.megengine.functional._convolutions import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose2d,
    conv_transpose3d,
    local_conv2d,
)
from collshim.megengine.functional._layers import (
    adaptive_avg_pool2d,
    adaptive_max_pool2d,
    avg_pool2d,
    dropout,
    embedding,
    gelu,
    hsigmoid,
    hswish,
    indexing_one_hot,
    leaky_relu,
    linear,
    logsigmoid,
    logsoftmax,
    logsumexp,
    max_pool2d,
    one_hot,
    pad,
    pixel_shuffle,
    prelu,
    relu,
    relu6,
    sigmoid,
    silu,
    softmax,
    softplus,
)
from collshim.megengine.functional.loss import *  # noqa: F403  # there too, as in MegEngine
from collshim.megengine.functional.math import normalize
from collshim.megengine.functional.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    sync_batch_norm,
)

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_max_pool2d",
    "avg_pool2d",
    "batch_norm",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose2d",
    "conv_transpose3d",
    "dropout",
    "embedding",
    "gelu",
    "group_norm",
    "hsigmoid",
    "hswish",
    "indexing_one_hot",
    "instance_norm",
    "layer_norm",
    "leaky_relu",
    "linear",
    "local_conv2d",
    "logsigmoid",
    "logsoftmax",
    "logsumexp",
    "max_pool2d",
    "normalize",
    "one_hot",
    "pad",
    "pixel_shuffle",
    "prelu",
    "relu",
    "relu6",
    "sigmoid",
    "silu",
    "softmax",
    "softplus",
    "sync_batch_norm",
]

__getattr__ = saying(__name__)
