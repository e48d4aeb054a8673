"""Layers without parameters (source: MegEngine 1.13.0, ``megengine.functional.nn``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from collshim.errors import ArgumentValueError
from collshim.megengine.core.tensor import slopes
from collshim.megengine.core.tensor.values import (
    Value,
    axes_of,
    floating,
    indices,
    ints,
    only_floating,
    operands,
    require,
    require_axes,
    spread,
    value_of,
)
from collshim.megengine.random._generator import generator
from collshim.megengine.tensor import computes

__all__ = [
    "adaptive_avg_pool2d",
    "adaptive_max_pool2d",
    "avg_pool2d",
    "dropout",
    "embedding",
    "gelu",
    "hsigmoid",
    "hswish",
    "indexing_one_hot",
    "leaky_relu",
    "linear",
    "logsigmoid",
    "logsoftmax",
    "logsumexp",
    "max_pool2d",
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
]


@computes
def linear(inp: Any, weight: Any, bias: Any = None, compute_mode: str = "default") -> Value:
    """Return ``inp`` times the transposed ``weight``, (out, in), plus ``bias``."""
    return F.linear(*operands(inp, weight, *([] if bias is None else [bias])))


@computes
def max_pool2d(inp: Value, kernel_size: Any, stride: Any = None, padding: Any = 0) -> Value:
    """Return the greatest element of each window."""
    size = spread(kernel_size, 2)
    steps = size if stride is None else spread(stride, 2)
    return slopes.max_pool2d(require_axes(only_floating(inp), 4), size, steps, spread(padding, 2))


@computes
def avg_pool2d(
    inp: Value, kernel_size: Any, stride: Any = None, padding: Any = 0, mode: str = "average_count_exclude_padding"
) -> Value:
    """Return the mean of each window, excluding the padding; in mode ``"average"``, including it."""
    size = spread(kernel_size, 2)
    steps = size if stride is None else spread(stride, 2)
    return F.avg_pool2d(require_axes(inp, 4), size, steps, spread(padding, 2), count_include_pad=mode == "average")


@computes
def adaptive_avg_pool2d(inp: Value, oshp: Any) -> Value:
    """Return the mean of each window; the last two axes are divided into ``oshp`` windows."""
    height, width = spread(oshp, 2)
    return F.adaptive_avg_pool2d(require_axes(inp, 4), (height, width))


@computes
def adaptive_max_pool2d(inp: Value, oshp: Any) -> Value:
    """Return the greatest of each window, with windows as in ``adaptive_avg_pool2d``."""
    shape = spread(oshp, 2)
    require_axes(inp, 4)
    if any(length % count for length, count in zip(inp.shape[-2:], shape, strict=True)):
        return F.adaptive_max_pool2d(inp, shape)
    size = tuple(length // count for length, count in zip(inp.shape[-2:], shape, strict=True))
    return slopes.max_pool2d(inp, size, size, (0, 0))


@computes
def relu(x: Any) -> Value:
    """Return the greater of ``x`` and 0."""
    return F.relu(value_of(x))


@computes
def relu6(x: Any) -> Value:
    """Limit ``x`` to the range from 0 to 6."""
    return F.relu6(value_of(x))


@computes
def sigmoid(x: Any) -> Value:
    """Return 1 / (1 + exp(-x))."""
    return torch.sigmoid(only_floating(value_of(x)))


@computes
def hsigmoid(x: Any) -> Value:
    """Return relu6(x + 3) / 6."""
    return F.relu6(floating(value_of(x)) + 3) / 6


@computes
def hswish(x: Any) -> Value:
    """Return x * relu6(x + 3) / 6."""
    value = only_floating(value_of(x))
    within = value * (value + 3) / 6
    return torch.where(value < -3, torch.zeros_like(value), torch.where(value > 3, value, within))


@computes
def silu(x: Any) -> Value:
    """Return x * sigmoid(x)."""
    return F.silu(only_floating(value_of(x)))


@computes
def gelu(x: Any) -> Value:
    """Return ``x`` times the cumulative distribution function of the standard normal distribution at ``x``."""
    return F.gelu(only_floating(value_of(x)))


@computes
def prelu(x: Any, y: Any) -> Value:
    """Return ``x`` if it is positive, otherwise ``y`` times ``x``; the shapes must be compatible."""
    value, slope = operands(x, y)
    return torch.where(value >= 0, value, slope * value)


@computes
def leaky_relu(inp: Value, negative_slope: float = 0.01) -> Value:
    """Return ``inp`` if it is positive, otherwise ``negative_slope`` times ``inp``."""
    return torch.where(inp >= 0, inp, negative_slope * inp)


@computes
def softplus(inp: Any) -> Value:
    """Return log(1 + exp(inp))."""
    value = floating(value_of(inp))
    return torch.logaddexp(value, torch.zeros_like(value))


@computes
def logsigmoid(inp: Any) -> Value:
    """Return log(sigmoid(inp))."""
    return F.logsigmoid(floating(value_of(inp)))


@computes
def softmax(inp: Value, axis: Any = None) -> Value:
    """Return exp(inp) divided by its sum along an axis: by default 0 for a tensor with 1 or 3 axes, and 1 otherwise.

    ``axis`` may also be a list, an array or a tensor of axes.
    """
    value = only_floating(inp)
    if isinstance(axis, list | np.ndarray | torch.Tensor):
        return torch.exp(value - torch.logsumexp(value, axes_of(value, axis), True))
    return torch.softmax(value, (0 if inp.dim() in (0, 1, 3) else 1) if axis is None else axis)


@computes
def logsoftmax(inp: Value, axis: Any) -> Value:
    """Return the logarithm of softmax along axes."""
    require(axis is not None, "can not set axis=None and keepdims=True")
    return inp - torch.logsumexp(floating(inp), axes_of(inp, axis), True)


@computes
def logsumexp(inp: Value, axis: Any, keepdims: bool = False) -> Value:
    """Return log(sum(exp(inp))) along axes."""
    require(axis is not None, "can not set axis=None and keepdims=True")
    return torch.logsumexp(floating(inp), axes_of(inp, axis), keepdims)


@computes
def dropout(inp: Value, drop_prob: float, training: bool = True) -> Value:
    """Zero elements with probability ``drop_prob`` and divide the rest by ``1 - drop_prob``, if ``training``."""
    require(0 <= drop_prob < 1, f"dropout: drop_prob is {drop_prob}, should be from 0 up to 1, less than 1")
    if not training or drop_prob == 0:
        return inp
    kept = torch.rand(inp.shape, generator=generator()).to(inp.device) >= drop_prob
    return inp * kept / (1 - drop_prob)


@computes
def one_hot(inp: Value, num_classes: int) -> Value:
    """Return an int32 tensor with a new last axis, which has a one at the index in each element of ``inp``."""
    return F.one_hot(indices(inp), num_classes)


@computes
def indexing_one_hot(src: Value, index: Value, axis: int = 1, keepdims: bool = False) -> Value:
    """Return for each index in ``index`` the element of ``src`` at that index along an axis."""
    found = torch.gather(src, axis, index.long().unsqueeze(axis))
    return found if keepdims else found.squeeze(axis)


@computes
def embedding(
    inp: Value, weight: Value, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float | None = None,
) -> Value:  # fmt: skip
    """Return the row of ``weight`` for each element; ValueError for the options that MegEngine does not support."""
    if padding_idx is not None or max_norm is not None or norm_type is not None:
        raise ArgumentValueError("Not support padding_idx, max_norm and norm_type now: leave them out")
    return weight[indices(inp)]


@computes
def pixel_shuffle(inp: Value, upscale_factor: int) -> Value:
    """Move channels into the last two axes, which become ``upscale_factor`` times as long."""
    return torch.pixel_shuffle(inp, upscale_factor)


@computes
def pad(src: Value, pad_width: Any, mode: str = "constant", constant_value: float = 0.0) -> Value:
    """Pad ``src`` before and after along each axis by the numbers in ``pad_width``, which may omit the last axes.

    ``mode`` is ``"constant"``, which pads with ``constant_value``, ``"reflect"``, or ``"replicate"`` and ``"edge"``,
    which mean the same; upper or lower case.
    """
    widths = [tuple(ints(width)) for width in pad_width]
    widths += [(0, 0)] * (src.dim() - len(widths))
    flat = [number for before, after in reversed(widths) for number in (before, after)]
    if mode.lower() == "constant":
        return F.pad(src, flat, value=constant_value)
    for axis, (before, after) in enumerate(widths):
        places = torch.arange(-before, src.shape[axis] + after, device=src.device)
        known = mode.lower().replace("edge", "replicate")
        src = src.index_select(axis, _inside(places, src.shape[axis], known))
    return src


def _inside(places: Value, length: int, mode: str) -> Value:
    """Return the indices of the elements that the padding repeats: the last ones, or ones mirrored at them."""
    if mode not in ("reflect", "replicate"):
        raise ArgumentValueError(f"pad: mode is {mode!r}, should be constant, reflect, replicate or edge")
    if mode == "replicate":
        return places.clamp(0, length - 1)
    return (length - 1) - ((length - 1) - places.abs()).abs()
