"""``tf.nn``'s convolutions and pools over torch, with TensorFlow's paddings and orders of axes. Gradients are torch's.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from collshim.errors import ArgumentValueError
from collshim.tensorflow.arithmetic import pair, tensor
from collshim.tensorflow.arrays import lengths_of
from collshim.tensorflow.errors import checked, invalid_argument
from collshim.tensorflow.function_names import name_functions
from collshim.tensorflow.tensor import Tensor, adopt

Pads = list[tuple[int, int]]
_CONVOLVE: Any = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
_TRANSPOSE: Any = {1: functional.conv_transpose1d, 2: functional.conv_transpose2d, 3: functional.conv_transpose3d}
_MAX_POOL: Any = {1: functional.max_pool1d, 2: functional.max_pool2d, 3: functional.max_pool3d}
_AVG_POOL: Any = {1: functional.avg_pool1d, 2: functional.avg_pool2d, 3: functional.avg_pool3d}


class _Axes:
    """The order of the axes of images: how many are spatial, and whether channels are the last axis.

    Further axes before the batch's are added to the batch.
    """

    def __init__(self, rank: int, data_format: str | None, dims: int) -> None:
        if not 1 <= rank <= 3:
            raise ArgumentValueError(f"the images have {rank} spatial axes, should have 1, 2 or 3")
        if dims < rank + 2:
            raise ArgumentValueError(f"input has {dims} axes, should have at least {rank + 2}")
        self.rank = rank
        self.channels_last = data_format is None or not data_format.startswith("NC")
        self._outer: list[int] = []

    def first(self, images: torch.Tensor) -> torch.Tensor:
        """Return the images with their channels on axis 1, as torch expects."""
        outer = images.dim() - self.rank - 1
        self._outer = list(images.shape[:outer])
        flat = images.reshape(-1, *images.shape[outer:])
        return flat.movedim(-1, 1) if self.channels_last else flat

    def back(self, images: torch.Tensor) -> torch.Tensor:
        """Return torch's images in the original order of axes."""
        found = images.movedim(1, -1) if self.channels_last else images
        return found.reshape(*self._outer, *found.shape[1:])

    def spatial(self, values: Any, what: str) -> list[int]:
        """Return a number for each spatial axis, from a number, or numbers for these axes or for all."""
        given = [1] if values is None else lengths_of(values)
        if len(given) == self.rank + 2:
            given = given[1:-1] if self.channels_last else given[2:]
        if len(given) not in (1, self.rank):
            raise ArgumentValueError(
                f"{what} should be of length 1, {self.rank} or {self.rank + 2} but was {len(given)}."
            )
        return given * self.rank if len(given) == 1 else given

    def pads(self, padding: Any, lengths: Sequence[int], spans: Sequence[int], strides: Sequence[int]) -> Pads:
        """Return the numbers of zeros before and after each spatial axis; a span is a window's length."""
        if not isinstance(padding, str):
            pairs = [(int(first), int(last)) for first, last in padding]
            if len(pairs) != self.rank + 2:
                raise ArgumentValueError(f"padding has {len(pairs)} pairs, should have one for each axis of the input")
            return pairs[1:-1] if self.channels_last else pairs[2:]
        if padding == "VALID":
            return [(0, 0)] * self.rank
        if padding != "SAME":
            raise ArgumentValueError(f'padding is {padding!r}, should be "SAME", "VALID" or a list of pairs')
        found = []
        for length, span, stride in zip(lengths, spans, strides, strict=True):
            total = max((math.ceil(length / stride) - 1) * stride + span - length, 0)
            found.append((total // 2, total - total // 2))
        return found


def _padded(images: torch.Tensor, pads: Pads, value: float = 0.0) -> torch.Tensor:
    if not any(map(any, pads)):
        return images
    return functional.pad(images, [number for both in reversed(pads) for number in both], value=value)


def _spans(window: Sequence[int], dilations: Sequence[int]) -> list[int]:
    return [(length - 1) * step + 1 for length, step in zip(window, dilations, strict=True)]


def _convolved(rank: int, given: Any, filters: Any, strides: Any, padding: Any, form: Any, dilations: Any) -> Tensor:
    images, weights = pair(given, filters, "Conv")
    axes = _Axes(rank, form, images.dim())
    steps, spread = axes.spatial(strides, "strides"), axes.spatial(dilations, "dilations")
    images = axes.first(images)
    if weights.dim() != rank + 2:
        raise ArgumentValueError(f"filters have {weights.dim()} axes, should have {rank + 2}")
    inner = weights.shape[-2]
    if not inner or images.shape[1] % inner:
        raise invalid_argument(f"input depth must be evenly divisible by filter depth: {images.shape[1]} vs {inner}")
    pads = axes.pads(padding, images.shape[2:], _spans(weights.shape[:rank], spread), steps)
    weights = weights.permute(rank + 1, rank, *range(rank))
    found = _CONVOLVE[rank](_padded(images, pads), weights, None, steps, 0, spread, images.shape[1] // inner)
    return adopt(axes.back(found))


@checked
def convolution(
    input: Any,
    filters: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the sums of products of ``filters`` with all windows of ``input``, which has 1 to 3 spatial axes.

    Args:
        input: images, by default with their channels on the last axis.
        filters: weights, of shape ``(*window, channels in, channels out)``; if they have fewer channels in than the
            images, these are convolved in groups.
        strides: the distance of windows, for all axes or for each.
        padding: "SAME", "VALID", or the numbers of zeros before and after each axis of ``input``.
        data_format: the order of axes, such as "NHWC"; "NC..." if the channels come before the spatial axes.
        dilations: the distance of a window's elements.
        name: without effect.

    Raises:
        ValueError: an argument does not fit the axes of ``input``.
        InvalidArgumentError: shapes do not fit together.
    """
    return _convolved(tensor(filters).dim() - 2, input, filters, strides, padding, data_format, dilations)


def _convolution_of(rank: int, form: str) -> Callable[..., Tensor]:
    @checked
    def convolve(
        input: Any,
        filters: Any,
        strides: Any,
        padding: Any,
        data_format: str | None = form,
        dilations: Any = None,
        name: str | None = None,
    ) -> Tensor:
        return _convolved(rank, input, filters, strides, padding, data_format, dilations)

    convolve.__doc__ = f"Return ``convolution`` over {rank} spatial axes."
    return convolve


conv2d, conv3d = _convolution_of(2, "NHWC"), _convolution_of(3, "NDHWC")


@checked
def conv1d(
    input: Any,
    filters: Any,
    stride: Any,
    padding: Any,
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return ``convolution`` over one spatial axis."""
    return _convolved(1, input, filters, stride, padding, data_format, dilations)


@checked
def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return each channel's convolutions with its own filters, of shape ``(*window, channels, filters of each)``."""
    weights = tensor(filter, None if hasattr(filter, "dtype") else tensor(input).dtype)
    if weights.dim() != 4:
        raise ArgumentValueError(f"filter has {weights.dim()} axes, should have 4")
    joined = weights.reshape(*weights.shape[:2], 1, -1)
    return _convolved(2, input, joined, strides, padding, data_format, dilations)


def _transposed(
    rank: int, given: Any, filters: Any, output_shape: Any, strides: Any, padding: Any, form: Any, dilations: Any
) -> Tensor:
    images, weights = pair(given, filters, "ConvBackpropInput")
    axes = _Axes(rank, form, images.dim())
    steps, spread = axes.spatial(strides, "strides"), axes.spatial(dilations, "dilations")
    lengths = axes.spatial(output_shape, "output_shape")
    images = axes.first(images)
    pads = axes.pads(padding, lengths, _spans(weights.shape[:rank], spread), steps)
    found = _TRANSPOSE[rank](images, weights.permute(rank + 1, rank, *range(rank)), None, steps, 0, 0, 1, spread)
    missing = [first + length - own for (first, _), length, own in zip(pads, lengths, found.shape[2:], strict=True)]
    found = _padded(found, [(0, max(0, number)) for number in missing])
    inside = [slice(first, first + length) for (first, _), length in zip(pads, lengths, strict=True)]
    return adopt(axes.back(found[(slice(None), slice(None), *inside)]))


@checked
def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Return the gradient of a ``convolution`` whose result has the gradient ``input`` and whose input has this shape.

    Args:
        input: images, see ``convolution``.
        filters: weights, of shape ``(*window, channels out, channels in)``.
        output_shape: the lengths of the result's axes, of all or only the spatial ones.
        strides: see ``convolution``, as the other arguments.
        padding: see ``convolution``.
        data_format: see ``convolution``.
        dilations: see ``convolution``.
        name: without effect.
    """
    rank = tensor(filters).dim() - 2
    return _transposed(rank, input, filters, output_shape, strides, padding, data_format, dilations)


def _transpose_of(rank: int, form: str) -> Callable[..., Tensor]:
    @checked
    def transpose(
        input: Any,
        filters: Any,
        output_shape: Any,
        strides: Any,
        padding: Any = "SAME",
        data_format: str | None = form,
        dilations: Any = None,
        name: str | None = None,
    ) -> Tensor:
        return _transposed(rank, input, filters, output_shape, strides, padding, data_format, dilations)

    transpose.__doc__ = f"Return ``conv_transpose`` over {rank} spatial axes."
    return transpose


conv1d_transpose, conv2d_transpose = _transpose_of(1, "NWC"), _transpose_of(2, "NHWC")
conv3d_transpose = _transpose_of(3, "NDHWC")


def _pooled(kind: str, rank: int, given: Any, window: Any, strides: Any, padding: Any, form: Any) -> Tensor:
    images = tensor(given)
    axes = _Axes(rank, form, images.dim())
    sizes, steps = axes.spatial(window, "ksize"), axes.spatial(strides, "strides")
    images = axes.first(images)
    pads = axes.pads(padding, images.shape[2:], sizes, steps)
    if kind == "MAX":
        least = -math.inf if images.is_floating_point() else torch.iinfo(images.dtype).min
        return adopt(axes.back(_MAX_POOL[rank](_padded(images, pads, least), sizes, steps)))
    found = _AVG_POOL[rank](_padded(images, pads), sizes, steps)
    if any(map(any, pads)):  # zeros of the padding do not count
        found = found / _AVG_POOL[rank](_padded(torch.ones_like(images[:1, :1]), pads), sizes, steps)
    return adopt(axes.back(found))


def _pool_of(kind: str, rank: int | None, form: str | None) -> Callable[..., Tensor]:
    @checked
    def pool(
        input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = form, name: str | None = None
    ) -> Tensor:
        axes = tensor(input).dim() - 2 if rank is None else rank
        return _pooled(kind, axes, input, ksize, strides, padding, data_format)

    word = "greatest" if kind == "MAX" else "mean"
    pool.__doc__ = f"Return the {word} element of each window of ``ksize``; see ``convolution`` for the arguments."
    return pool


max_pool, avg_pool = _pool_of("MAX", None, None), _pool_of("AVG", None, None)
max_pool1d, avg_pool1d = _pool_of("MAX", 1, "NWC"), _pool_of("AVG", 1, "NWC")
max_pool2d, avg_pool2d = _pool_of("MAX", 2, "NHWC"), _pool_of("AVG", 2, "NHWC")
max_pool3d, avg_pool3d = _pool_of("MAX", 3, "NDHWC"), _pool_of("AVG", 3, "NDHWC")
name_functions(globals())
