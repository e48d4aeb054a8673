"""Convolutions (source: MegEngine 1.13.0, ``megengine.module.conv``)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from collshim.errors import ArgumentValueError
from collshim.megengine.core.tensor.values import ints, require, spread
from collshim.megengine.functional import _convolutions
from collshim.megengine.functional._layers import pad, relu
from collshim.megengine.module import init
from collshim.megengine.module.module import Module
from collshim.megengine.tensor import Parameter, Tensor

_PADDINGS = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate"}


def _sizes(numbers: Any, axes: int, least: int) -> tuple[int, ...]:
    """Return one size per axis; AssertionError if there are more or fewer, or if one is below ``least``."""
    found = spread(numbers, axes)
    require(len(found) == axes and min(found) >= least, f"sizes are {numbers}, should be {axes} of at least {least}")
    return found


class _Convolution(Module):
    """The base class of convolutions over ``_axes`` axes: sizes, groups, a weight, and a bias (1, out, 1, ...).

    The weight is (out, in, K, ...), or (groups, out, in, K, ...) with the channels of one group. Its initial values are
    random, with a standard deviation of ``fan_in ** -0.5``.
    """

    _axes = 2

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
        groups: int, bias: bool, output_padding: Any = 0, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        for what, count in {"in_channels": in_channels, "out_channels": out_channels}.items():
            if count % groups:
                raise ArgumentValueError(f"{what} must be divisible by groups: it is {count}, they are {groups}")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.output_padding = output_padding
        self._set_sizes(kernel_size, stride, padding, dilation)
        self.weight = Parameter(np.zeros(self._infer_weight_shape(), np.float32))
        self.bias = Parameter(np.zeros(self._infer_bias_shape(), np.float32)) if bias else None
        self.reset_parameters()

    def _set_sizes(self, kernel_size: Any, stride: Any, padding: Any, dilation: Any) -> None:
        self.kernel_size, self.stride = _sizes(kernel_size, self._axes, 1), _sizes(stride, self._axes, 1)
        self.padding, self.dilation = _sizes(padding, self._axes, 0), _sizes(dilation, self._axes, 1)

    def _infer_weight_shape(self) -> tuple[int, ...]:
        first, second = self._ends()
        shape = (first // self.groups, second // self.groups, *ints(self.kernel_size))
        return shape if self.groups == 1 else (self.groups, *shape)

    def _ends(self) -> tuple[int, int]:
        return self.out_channels, self.in_channels

    def _infer_bias_shape(self) -> tuple[int, ...]:
        return (1, self.out_channels, *[1] * self._axes)

    def _get_fanin(self) -> int:
        return math.prod(ints(self.kernel_size)) * self.in_channels

    def reset_parameters(self) -> None:
        """Reset the parameters."""
        init.normal_(self.weight, 0.0, self._get_fanin() ** -0.5)
        if self.bias is not None:
            init.zeros_(self.bias)

    def calc_conv(self, inp: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute ``forward`` with another weight and bias; subclasses implement this."""
        raise NotImplementedError

    def forward(self, inp: Tensor) -> Tensor:
        """Convolve, see the function of the same name in ``functional``."""
        return self.calc_conv(inp, self.weight, self.bias)

    def _module_info_string(self) -> str:
        settings: dict[str, Any] = {"stride": 1, "padding": 0, "dilation": 1}
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={vars(self)['kernel_size']}"]
        for name, usual in settings.items():
            if set(ints(vars(self)[name])) != {usual}:
                parts.append(f"{name}={vars(self)[name]}")
        parts += [f"groups={self.groups}"] if self.groups != 1 else []
        return ", ".join([*parts, *(["bias=False"] if self.bias is None else [])])


class Conv1d(_Convolution):
    """Convolution of (N, C, L)."""

    _axes = 1

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0,
        dilation: int = 1, groups: int = 1, bias: bool = True, conv_mode: str = "cross_correlation",
        compute_mode: str = "default", padding_mode: str = "zeros", **kwargs: Any,
    ) -> None:  # fmt: skip
        sizes = kernel_size, stride, padding, dilation
        super().__init__(in_channels, out_channels, *sizes, groups, bias, **kwargs)
        self.conv_mode, self.compute_mode, self.padding_mode = conv_mode, compute_mode, padding_mode

    def _set_sizes(self, kernel_size: Any, stride: Any, padding: Any, dilation: Any) -> None:
        """Keep the numbers as they are, as MegEngine does for one axis."""
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation

    def calc_conv(self, inp: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute ``forward`` with another weight and bias."""
        padding: Any = self.padding
        if self.padding_mode != "zeros":
            inp, padding = pad(inp, ((0, 0), (0, 0), (padding, padding)), _PADDINGS[self.padding_mode]), 0
        sizes = self.stride, padding, self.dilation
        return _convolutions.conv1d(inp, weight, bias, *sizes, self.groups, self.conv_mode)  # type: ignore[no-any-return]


class Conv2d(_Convolution):
    """Convolution of (N, C, H, W)."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, conv_mode: str = "cross_correlation",
        compute_mode: str = "default", padding_mode: str = "zeros", **kwargs: Any,
    ) -> None:  # fmt: skip
        sizes = kernel_size, stride, padding, dilation
        super().__init__(in_channels, out_channels, *sizes, groups, bias, **kwargs)
        self.conv_mode, self.compute_mode, self.padding_mode = conv_mode, compute_mode, padding_mode

    def calc_conv(self, inp: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute ``forward`` with another weight and bias."""
        padding = self.padding
        if self.padding_mode != "zeros":
            widths = ((0, 0), (0, 0), (padding[0], padding[0]), (padding[1], padding[1]))
            inp, padding = pad(inp, widths, _PADDINGS[self.padding_mode]), (0, 0)
        sizes = self.stride, padding, self.dilation
        return _convolutions.conv2d(inp, weight, bias, *sizes, self.groups, self.conv_mode)  # type: ignore[no-any-return]


class ConvRelu2d(Conv2d):
    """``Conv2d`` followed by ``functional.relu``."""

    def forward(self, inp: Tensor) -> Tensor:
        """Convolve, and apply ``functional.relu``."""
        return relu(super().forward(inp))  # type: ignore[no-any-return]


class LocalConv2d(Conv2d):
    """Convolution of (N, C, H, W) with a kernel of its own for each place of the output, without a bias.

    The weight is (groups, output height, output width, in, K, K, out), with the channels of one group.
    """

    def __init__(
        self, in_channels: int, out_channels: int, input_height: int, input_width: int, kernel_size: Any,
        stride: Any = 1, padding: Any = 0, dilation: Any = 1, groups: int = 1, conv_mode: str = "cross_correlation",
        **kwargs: Any,
    ) -> None:  # fmt: skip
        self.input_height, self.input_width = input_height, input_width
        sizes = kernel_size, stride, padding, dilation
        super().__init__(in_channels, out_channels, *sizes, groups, bias=False, conv_mode=conv_mode, **kwargs)

    def _infer_weight_shape(self) -> tuple[int, ...]:
        height, width = (
            (length + 2 * padding - size) // stride + 1
            for length, padding, size, stride in zip(
                (self.input_height, self.input_width), self.padding, self.kernel_size, self.stride, strict=True
            )
        )
        channels = self.in_channels // self.groups, self.out_channels // self.groups
        return self.groups, height, width, channels[0], *self.kernel_size, channels[1]

    def calc_conv(self, inp: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute ``forward`` with another weight and bias."""
        sizes = self.stride, self.padding, self.dilation
        return _convolutions.local_conv2d(inp, weight, bias, *sizes, self.conv_mode)  # type: ignore[no-any-return]


class Conv3d(_Convolution):
    """Convolution of (N, C, T, H, W)."""

    _axes = 3

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, conv_mode: str = "cross_correlation",
    ) -> None:  # fmt: skip
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias)
        self.conv_mode = conv_mode

    def calc_conv(self, inp: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute ``forward`` with another weight and bias."""
        sizes = self.stride, self.padding, self.dilation
        return _convolutions.conv3d(inp, weight, bias, *sizes, self.groups, self.conv_mode)  # type: ignore[no-any-return]


class ConvTranspose2d(_Convolution):
    """Transposed convolution of (N, C, H, W), with a weight (in, out, K, K)."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
        conv_mode: str = "cross_correlation", compute_mode: str = "default", **kwargs: Any,
    ) -> None:  # fmt: skip
        sizes, extra = (kernel_size, stride, padding, dilation), _sizes(output_padding, 2, 0)
        super().__init__(in_channels, out_channels, *sizes, groups, bias, output_padding=extra, **kwargs)
        self.conv_mode, self.compute_mode = conv_mode, compute_mode

    def _ends(self) -> tuple[int, int]:
        return self.in_channels, self.out_channels

    def _get_fanin(self) -> int:
        return math.prod(self.kernel_size) * self.out_channels

    def calc_conv(self, inp: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute ``forward`` with another weight and bias."""
        sizes = self.stride, self.padding, self.output_padding, self.dilation
        modes = self.conv_mode, self.compute_mode
        return _convolutions.conv_transpose2d(inp, weight, bias, *sizes, self.groups, *modes)  # type: ignore[no-any-return]


class ConvTranspose3d(_Convolution):
    """Transposed convolution of (N, C, T, H, W), with a weight (in, out, K, K, K)."""

    _axes = 3

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
    ) -> None:  # fmt: skip
        sizes = kernel_size, stride, padding, dilation
        super().__init__(in_channels, out_channels, *sizes, groups, bias, output_padding=output_padding)

    def _ends(self) -> tuple[int, int]:
        return self.in_channels, self.out_channels

    def calc_conv(self, inp: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute ``forward`` with another weight and bias."""
        sizes = self.stride, self.padding, self.output_padding, self.dilation
        return _convolutions.conv_transpose3d(inp, weight, bias, *sizes, self.groups)  # type: ignore[no-any-return]
