"""Functions on images, (H, W, C) (source: MegEngine 1.13.0, ``megengine.data.transform.vision.functional``)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch

from collshim.errors import ArgumentValueError

Image: TypeAlias = np.ndarray[Any, Any]

_MODES = {0: "nearest", 1: "bilinear", 2: "bicubic"}
"""torch's names for OpenCV's numbers INTER_NEAREST, INTER_LINEAR and INTER_CUBIC."""


def _require_axes(image: Image) -> None:
    if image.ndim != 3:
        raise ArgumentValueError(f"image must have 3 dims, but got {image.ndim} dims")


def sides(size: Any) -> tuple[int, int, int, int]:
    """Return the widths of a border at the top, bottom, left and right.

    Args:
        size: one width for all sides; two widths, for the bottom and the right; or four. ValueError otherwise.
    """
    if isinstance(size, int):
        return size, size, size, size
    if isinstance(size, Sequence) and len(size) == 2:
        return 0, size[0], 0, size[1]
    if isinstance(size, Sequence) and len(size) == 4:
        top, bottom, left, right = size
        return top, bottom, left, right
    raise ArgumentValueError(f"size is {size!r}, should be a list/tuple of (top, down, left, right) four pad sizes")


def pad(input: Image, size: Any, value: Any) -> Image:
    """Return the image with a border.

    Args:
        input: the image.
        size: the widths, as in ``sides``.
        value: the border's value in each channel; a single number is that of channel 0, and the others are 0. If it is
            a float, the result is float32.
    """
    _require_axes(input)
    top, bottom, left, right = sides(size)
    numbers = np.array(value)
    image = input.astype(np.float32) if numbers.dtype == float else input
    channels = np.zeros(max(image.shape[2], numbers.size), numbers.dtype)
    channels[: numbers.size] = numbers.reshape(-1)
    shape = (top + image.shape[0] + bottom, left + image.shape[1] + right, image.shape[2])
    result = np.empty(shape, image.dtype)
    result[:] = channels[: image.shape[2]]
    result[top : top + image.shape[0], left : left + image.shape[1]] = image
    return result


def flip(image: Image, flipCode: int) -> Image:
    """Return the image flipped: horizontally for 1, vertically for 0, both for -1."""
    _require_axes(image)
    axes = {1: (1,), 0: (0,), -1: (0, 1)}[flipCode]
    return np.ascontiguousarray(np.flip(image, axes))


def resize(input: Image, size: Sequence[int], interpolation: Any = 1) -> Image:
    """Return the image resized, in its dtype.

    Args:
        input: the image.
        size: the height and the width. ValueError unless it is two numbers.
        interpolation: OpenCV's number of the method: 0 nearest, 1 linear, 2 cubic; from a list, one is drawn at random.
            ValueError for others. Integers may differ from OpenCV's by 1, because it computes them in fixed point.
    """
    _require_axes(input)
    if len(size) != 2:
        raise ArgumentValueError(f"resize needs (h, w), but got {size}")
    number = random.choice(interpolation) if isinstance(interpolation, Sequence) else interpolation
    if number not in _MODES:
        raise ArgumentValueError(f"interpolation is {number!r}, should be 0 (nearest), 1 (linear) or 2 (cubic)")
    pixels = torch.from_numpy(np.ascontiguousarray(input.transpose(2, 0, 1), dtype=np.float32))[None]
    exact = {} if number == 0 else {"align_corners": False}
    found = torch.nn.functional.interpolate(pixels, tuple(size), mode=_MODES[number], **exact)[0]
    result = found.permute(1, 2, 0).contiguous().numpy()
    if input.dtype.kind in "ui":
        limits = np.iinfo(input.dtype)
        result = np.clip(np.rint(result), limits.min, limits.max)
    return result.astype(input.dtype)
