"""Convolutions (source: MegEngine 1.13.0, ``megengine.functional.nn``)."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from collshim.megengine.core.tensor.values import Value, operands, require, require_axes, spread, value_of
from collshim.megengine.tensor import computes

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose2d", "conv_transpose3d", "local_conv2d"]


@computes
def conv1d(
    inp: Any, weight: Any, bias: Any = None, stride: int = 1, padding: int = 0, dilation: int = 1, groups: int = 1,
    conv_mode: str = "cross_correlation", compute_mode: str = "default",
) -> Value:  # fmt: skip
    """Convolve (N, C, L) with a weight (out, in, K), or (groups, out, in, K) if there are several groups."""
    value, kernel = _input_and_kernel(inp, weight, groups, 1, conv_mode)
    return F.conv1d(value, kernel, _flat(bias), stride, padding, dilation, groups)


@computes
def conv2d(
    inp: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    conv_mode: str = "cross_correlation", compute_mode: str = "default",
) -> Value:  # fmt: skip
    """Convolve (N, C, H, W) with a weight (out, in, K, K), or (groups, out, in, K, K) if there are several groups.

    ``bias`` is (1, out, 1, 1).
    """
    value, kernel = _input_and_kernel(inp, weight, groups, 2, conv_mode)
    return F.conv2d(value, kernel, _flat(bias), spread(stride, 2), spread(padding, 2), spread(dilation, 2), groups)


@computes
def conv3d(
    inp: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1,
    conv_mode: str = "cross_correlation",
) -> Value:  # fmt: skip
    """Convolve (N, C, T, H, W) with a weight (out, in, K, K, K), or (groups, out, in, K, K, K) if there are groups."""
    value, kernel = _input_and_kernel(inp, weight, groups, 3, conv_mode)
    return F.conv3d(value, kernel, _flat(bias), spread(stride, 3), spread(padding, 3), spread(dilation, 3), groups)


@computes
def conv_transpose2d(
    inp: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    dilation: Any = 1, groups: int = 1, conv_mode: str = "cross_correlation", compute_mode: str = "default",
) -> Value:  # fmt: skip
    """Apply a transposed convolution to (N, C, H, W), with a weight (in, out, K, K)."""
    value, kernel = _input_and_kernel(inp, weight, groups, 2, conv_mode)
    sizes = spread(stride, 2), spread(padding, 2), spread(output_padding, 2)
    return F.conv_transpose2d(value, kernel, _flat(bias), *sizes, groups, spread(dilation, 2))


@computes
def conv_transpose3d(
    inp: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, output_padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Value:  # fmt: skip
    """Apply a transposed convolution to (N, C, T, H, W), with a weight (in, out, K, K, K)."""
    value, kernel = _input_and_kernel(inp, weight, groups, 3)
    sizes = spread(stride, 3), spread(padding, 3), spread(output_padding, 3)
    return F.conv_transpose3d(value, kernel, _flat(bias), *sizes, groups, spread(dilation, 3))


@computes
def local_conv2d(
    inp: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    conv_mode: str = "cross_correlation",
) -> Value:  # fmt: skip
    """Convolve (N, C, H, W) with a kernel of its own for each place of the output.

    ``weight`` is (groups, output height, output width, in, K, K, out), with the channels of one group.
    """
    value, kernel = _input_and_kernel(inp, weight, 1, 2, conv_mode)
    groups, height, width, _, *size, _ = kernel.shape
    windows = F.unfold(value, tuple(size), spread(dilation, 2), spread(padding, 2), spread(stride, 2))
    grouped = windows.unflatten(1, (groups, -1))
    result: Value = torch.einsum("ngkl,glko->ngol", grouped, kernel.flatten(3, 5).flatten(1, 2))
    result = result.flatten(1, 2).unflatten(2, (height, width))
    return result if bias is None else result + value_of(bias)


def _input_and_kernel(
    inp: Any, weight: Any, groups: int, axes: int, conv_mode: str = "cross_correlation"
) -> tuple[Value, Value]:
    """Return input and weight as torch takes them: without an axis for the groups.

    Raises:
        RuntimeError: the input has another number of axes.
        AssertionError: ``conv_mode`` is not cross-correlation, the only mode that MegEngine has too.
    """
    require(conv_mode.lower() == "cross_correlation", f"conv_mode is {conv_mode!r}, should be 'cross_correlation'")
    value, kernel = operands(inp, weight)
    require_axes(value, axes + 2)
    return value, kernel.flatten(0, 1) if groups != 1 and kernel.dim() == axes + 3 else kernel


def _flat(bias: Any) -> Value | None:
    return None if bias is None else value_of(bias).reshape(-1)
