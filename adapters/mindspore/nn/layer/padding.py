"""The padding of convolutions and poolings, computed as in MindSpore 2.10.0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_in, check_int

__all__ = ["around", "require_channels_first", "same"]


def around(padding: Any, of: str) -> tuple[int, int, int, int]:
    """Return the padding at the top, bottom, left and right, from an int or a tuple of four ints.

    Raises:
        TypeError: ``padding`` is neither an int nor a tuple.
        ValueError: a number is negative, or the tuple does not have four.
    """
    if isinstance(padding, int):
        zeros = check_int(padding, "padding", of, least=0)
        return zeros, zeros, zeros, zeros
    if not isinstance(padding, tuple):
        text = f"the type of 'padding' must be int or tuple(int), but got {type(padding).__name__}"
        refuse(TypeError, f"For {of!r}, {text}")
    if len(padding) != 4:
        refuse(ValueError, f"For {of!r}, the tuple 'padding' must have 4 numbers, but got {padding}")
    top, bottom, left, right = (check_int(item, "padding item", of, least=0) for item in padding)
    return top, bottom, left, right


def same(
    size: Sequence[int], kernel: Sequence[int], stride: Sequence[int], dilation: Sequence[int]
) -> tuple[int, int, int, int]:
    """Return the padding with which the output's size is the input's size over the stride, rounded up."""
    zeros = []
    for length, taps, step, distance in zip(size, kernel, stride, dilation, strict=True):
        needed = max((-(-length // step) - 1) * step + (taps - 1) * distance + 1 - length, 0)
        zeros += [needed // 2, needed - needed // 2]
    top, bottom, left, right = zeros
    return top, bottom, left, right


def require_channels_first(data_format: str, of: str) -> None:
    """Refuse "NHWC", which MindSpore supports only on GPUs, and unknown formats."""
    check_in(data_format, "format", of, ("NCHW", "NHWC"))
    if data_format == "NHWC":
        refuse(ValueError, f"For {of!r}, the 'NHWC' format is only for MindSpore on GPUs: should be 'NCHW'")
