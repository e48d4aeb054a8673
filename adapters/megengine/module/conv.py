"""Convolutions (source: MegEngine 1.13.0, ``megengine.module.conv``)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from collshim.errors import ArgumentValueError
from collshim.megengine.core.tensor.values import ints
from collshim.megengine.functional._layers import conv1d, conv2d, conv_transpose2d, pad, relu
from collshim.megengine.module import init
from collshim.megengine.module.module import Module
from collshim.megengine.tensor import Parameter, Tensor

_PADDINGS = {"zeros": "constant", "reflect": "reflect", "replicate": "replicate"}


def _pair(numbers: Any) -> tuple[int, ...]:
    found = ints(numbers)
    return found * 2 if len(found) == 1 else found


class _Convolution(Module):
    """The base class of convolutions over one or two axes: sizes, groups, a weight, and a bias (1, out, 1, ...).

    The weight is (out, in, K, ...), or (groups, out, in, K, ...) with the channels of one group. Its initial values are
    random, with a standard deviation of ``fan_in ** -0.5``.
    """

    def __init__(self, channels: tuple[int, int], kernel_size: tuple[int, ...], groups: int, bias: bool, **kwargs: Any):
        super().__init__(**kwargs)
        for what, count in zip(("in_channels", "out_channels"), channels, strict=True):
            if count % groups:
                raise ArgumentValueError(f"{what} must be divisible by groups: it is {count}, they are {groups}")
        self.in_channels, self.out_channels = channels
        self.groups = groups
        self._sizes = kernel_size
        self.weight = Parameter(np.zeros(self._infer_weight_shape(), np.float32))
        self.bias = Parameter(np.zeros(self._infer_bias_shape(), np.float32)) if bias else None
        self.reset_parameters()

    def _infer_weight_shape(self) -> tuple[int, ...]:
        first, second = self._ends()
        shape = (first // self.groups, second // self.groups, *self._sizes)
        return shape if self.groups == 1 else (self.groups, *shape)

    def _ends(self) -> tuple[int, int]:
        return self.out_channels, self.in_channels

    def _infer_bias_shape(self) -> tuple[int, ...]:
        return (1, self.out_channels, *[1] * len(self._sizes))

    def _get_fanin(self) -> int:
        return math.prod(self._sizes) * self.in_channels

    def reset_parameters(self) -> None:
        """Reset the parameters."""
        init.normal_(self.weight, 0.0, self._get_fanin() ** -0.5)
        if self.bias is not None:
            init.zeros_(self.bias)

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

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: int, stride: int = 1, padding: int = 0,
        dilation: int = 1, groups: int = 1, bias: bool = True, conv_mode: str = "cross_correlation",
        compute_mode: str = "default", padding_mode: str = "zeros", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__((in_channels, out_channels), (kernel_size,), groups, bias, **kwargs)
        self.kernel_size, self.stride, self.padding, self.dilation = kernel_size, stride, padding, dilation
        self.padding_mode = padding_mode

    def calc_conv(self, inp: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute ``forward`` with another weight and bias."""
        padding = self.padding
        if self.padding_mode != "zeros":
            inp, padding = pad(inp, ((0, 0), (0, 0), (padding, padding)), _PADDINGS[self.padding_mode]), 0
        return conv1d(inp, weight, bias, self.stride, padding, self.dilation, self.groups)  # type: ignore[no-any-return]

    def forward(self, inp: Tensor) -> Tensor:
        """Convolve, see ``functional.conv1d``."""
        return self.calc_conv(inp, self.weight, self.bias)


class Conv2d(_Convolution):
    """Convolution of (N, C, H, W)."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, conv_mode: str = "cross_correlation",
        compute_mode: str = "default", padding_mode: str = "zeros", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__((in_channels, out_channels), _pair(kernel_size), groups, bias, **kwargs)
        self.kernel_size, self.stride = _pair(kernel_size), _pair(stride)
        self.padding, self.dilation = _pair(padding), _pair(dilation)
        self.conv_mode, self.compute_mode, self.padding_mode = conv_mode, compute_mode, padding_mode

    def calc_conv(self, inp: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute ``forward`` with another weight and bias."""
        padding = self.padding
        if self.padding_mode != "zeros":
            widths = ((0, 0), (0, 0), (padding[0], padding[0]), (padding[1], padding[1]))
            inp, padding = pad(inp, widths, _PADDINGS[self.padding_mode]), (0, 0)
        return conv2d(inp, weight, bias, self.stride, padding, self.dilation, self.groups)  # type: ignore[no-any-return]

    def forward(self, inp: Tensor) -> Tensor:
        """Convolve, see ``functional.conv2d``."""
        return self.calc_conv(inp, self.weight, self.bias)


class ConvRelu2d(Conv2d):
    """``Conv2d`` followed by ``functional.relu``."""

    def forward(self, inp: Tensor) -> Tensor:
        """Convolve, and apply ``functional.relu``."""
        return relu(super().forward(inp))  # type: ignore[no-any-return]


class ConvTranspose2d(_Convolution):
    """Transposed convolution of (N, C, H, W), with a weight (in, out, K, K)."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        output_padding: Any = 0, dilation: Any = 1, groups: int = 1, bias: bool = True,
        conv_mode: str = "cross_correlation", compute_mode: str = "default", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__((in_channels, out_channels), _pair(kernel_size), groups, bias, **kwargs)
        self.kernel_size, self.stride = _pair(kernel_size), _pair(stride)
        self.padding, self.output_padding, self.dilation = _pair(padding), _pair(output_padding), _pair(dilation)

    def _ends(self) -> tuple[int, int]:
        return self.in_channels, self.out_channels

    def _get_fanin(self) -> int:
        return math.prod(self._sizes) * self.out_channels

    def forward(self, inp: Tensor) -> Tensor:
        """Apply ``functional.conv_transpose2d``."""
        sizes = self.stride, self.padding, self.output_padding, self.dilation
        return conv_transpose2d(inp, self.weight, self.bias, *sizes, self.groups)  # type: ignore[no-any-return]
