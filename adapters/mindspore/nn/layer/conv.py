"""``mindspore.nn.Conv2d`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch.nn import functional

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, check_in, check_int, pair_of_ints
from collshim.mindspore.common.initializer import HeUniform, Uniform, initializer
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.nn.layer.padding import around, require_channels_first, same

__all__ = ["Conv2d"]


class Conv2d(Cell):
    """A convolution of images of shape ``(N, in_channels, height, width)``, or of one image, without ``N``.

    Args:
        in_channels: the number of input channels.
        out_channels: the number of output channels.
        kernel_size: the kernel's height and width, or an int for both.
        stride: the vertical and horizontal stride, or an int for both.
        pad_mode: "same": pad with zeros so that the output's size is the input's size over the stride, rounded up; if
            the number of zeros is odd, the bottom and the right have one more. "valid": no padding. "pad": pad with
            ``padding`` zeros.
        padding: the zeros at the top, bottom, left and right, or an int for all; 0 unless ``pad_mode`` is "pad".
        dilation: the vertical and horizontal spacing of the kernel's elements, or an int for both.
        group: the number of groups of channels.
        has_bias: whether there is a bias.
        weight_init: an initializer, its name, a number or a tensor for ``weight``, of shape ``(out_channels,
            in_channels / group, height, width)``. None: ``HeUniform(sqrt(5))``.
        bias_init: the same for ``bias``. None: uniform in ``(-x, x)``, with ``x`` 1 over the root of a kernel's size.
        data_format: "NCHW".
        dtype: the parameters' dtype.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range, ``group`` does not divide the channels, or ``pad_mode`` is unknown.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        pad_mode: str = "same",
        padding: Any = 0,
        dilation: Any = 1,
        group: int = 1,
        has_bias: bool = False,
        weight_init: Any = None,
        bias_init: Any = None,
        data_format: str = "NCHW",
        dtype: Any = torch.float32,
    ) -> None:
        super().__init__()
        self.in_channels = check_int(in_channels, "in_channels", self.cls_name, least=1)
        self.out_channels = check_int(out_channels, "out_channels", self.cls_name, least=1)
        self.kernel_size = pair_of_ints(kernel_size, "kernel_size", self.cls_name)
        self.stride = pair_of_ints(stride, "stride", self.cls_name)
        self.dilation = pair_of_ints(dilation, "dilation", self.cls_name)
        self.group = check_int(group, "group", self.cls_name, least=1)
        self.pad_mode = check_in(pad_mode, "pad_mode", self.cls_name, ("same", "valid", "pad"))
        self.padding, self.data_format = padding, data_format
        self._zeros = around(padding, self.cls_name)
        self.has_bias = check_bool(has_bias, "has_bias", self.cls_name)
        self._require_fitting()
        self.weight_init = HeUniform(math.sqrt(5)) if weight_init is None else weight_init
        shape = [out_channels, in_channels // group, *self.kernel_size]
        self.weight = Parameter(initializer(self.weight_init, shape, dtype), name="weight")
        self.bias_init, self.bias = bias_init, None
        if has_bias:
            self.bias_init = Uniform(1 / math.sqrt(math.prod(shape[1:]))) if bias_init is None else bias_init
            self.bias = Parameter(initializer(self.bias_init, [out_channels], dtype), name="bias")

    def _require_fitting(self) -> None:
        require_channels_first(self.data_format, self.cls_name)
        if self.in_channels % self.group or self.out_channels % self.group:
            text = f"but got group:{self.group}, in_channels:{self.in_channels}, out_channels:{self.out_channels}"
            refuse(ValueError, f"The argument 'group' should divide 'in_channels' and 'out_channels', {text}")
        if self.pad_mode != "pad" and any(self._zeros):
            text = f"'padding' must be zero if 'pad_mode' is {self.pad_mode!r}, but got {self.padding}"
            refuse(ValueError, f"For {self.cls_name!r}, {text}")

    def construct(self, x: Any) -> Any:
        """Return the outputs."""
        zeros = self._zeros
        if self.pad_mode == "same":
            zeros = same(x.shape[-2:], self.kernel_size, self.stride, self.dilation)
        top, bottom, left, right = zeros
        if top == bottom and left == right:
            edges: tuple[int, int] = (top, left)
        else:
            x, edges = functional.pad(x, (left, right, top, bottom)), (0, 0)
        return functional.conv2d(x, self.weight, self.bias, self.stride, edges, self.dilation, self.group)

    def extend_repr(self) -> str:
        """Return the settings as text for ``repr``."""
        names = ("kernel_size", "stride", "pad_mode", "padding", "dilation", "group", "has_bias")
        settings = ", ".join(f"{name}={getattr(self, name)}" for name in (*names, "weight_init", "bias_init"))
        channels = f"input_channels={self.in_channels}, output_channels={self.out_channels}"
        return f"{channels}, {settings}, format={self.data_format}"
