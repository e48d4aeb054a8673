"""A convolution followed by a normalization (source: MegEngine 1.13.0, ``megengine.module.conv_bn``)."""

from __future__ import annotations

from typing import Any

from collshim.megengine.functional._layers import relu
from collshim.megengine.module.batchnorm import BatchNorm2d
from collshim.megengine.module.conv import Conv2d
from collshim.megengine.module.module import Module
from collshim.megengine.tensor import Tensor


class ConvBn2d(Module):
    """``Conv2d`` as ``conv``, then ``BatchNorm2d`` as ``bn``."""

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Any, stride: Any = 1, padding: Any = 0,
        dilation: Any = 1, groups: int = 1, bias: bool = True, conv_mode: str = "cross_correlation",
        compute_mode: str = "default", eps: float = 1e-5, momentum: float = 0.9, affine: bool = True,
        track_running_stats: bool = True, padding_mode: str = "zeros", **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        sizes = kernel_size, stride, padding, dilation, groups
        modes = conv_mode, compute_mode, padding_mode
        self.conv = Conv2d(in_channels, out_channels, *sizes, bias, *modes, **kwargs)
        self.bn = BatchNorm2d(out_channels, eps, momentum, affine, track_running_stats)

    def forward(self, inp: Tensor) -> Tensor:
        """Convolve and normalize."""
        result: Tensor = self.bn(self.conv(inp))
        return result


class ConvBnRelu2d(ConvBn2d):
    """``ConvBn2d`` followed by ``functional.relu``."""

    def forward(self, inp: Tensor) -> Tensor:
        """Convolve, normalize, and apply ``functional.relu``."""
        return relu(super().forward(inp))  # type: ignore[no-any-return]
