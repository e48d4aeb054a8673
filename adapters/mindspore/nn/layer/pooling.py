"""``MaxPool2d``, ``AvgPool2d`` and ``AdaptiveAvgPool2d`` of ``mindspore.nn`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_in, check_type
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.nn.layer.padding import require_channels_first, same

__all__ = ["AdaptiveAvgPool2d", "AvgPool2d", "MaxPool2d"]


class _Pool2d(Cell):
    """The settings that both poolings share."""

    def __init__(self, kernel_size: Any, stride: Any, pad_mode: str, data_format: str) -> None:
        super().__init__()
        check_type(pad_mode, "pad_mode", self.cls_name, str)
        self.pad_mode = check_in(pad_mode.upper(), "pad_mode", self.cls_name, ("VALID", "SAME", "PAD"))
        require_channels_first(data_format, self.cls_name)
        self.kernel_size = self._positive("kernel_size", kernel_size)
        self.stride = self._positive("stride", stride)

    def _positive(self, name: str, value: Any) -> Any:
        check_type(value, name, self.cls_name, int, tuple)
        numbers = (value,) if isinstance(value, int) else value
        if any(not isinstance(number, int) or number <= 0 for number in numbers) or len(numbers) not in (1, 2):
            text = f"the '{name}' must be an positive int number or a tuple of two, but got {value}"
            refuse(ValueError, f"For {self.cls_name!r}, {text}")
        return value[0] if isinstance(value, tuple) and len(value) == 1 else value

    def _same(self, x: Any) -> tuple[int, int, int, int]:
        kernel, stride = _twice(self.kernel_size), _twice(self.stride)
        return same(x.shape[-2:], kernel, stride, (1, 1))

    def extend_repr(self) -> str:
        """Return the settings as text for ``repr``."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, pad_mode={self.pad_mode}"


class MaxPool2d(_Pool2d):
    """The maximum of each window of an image.

    Args:
        kernel_size: the window's height and width, or an int for both.
        stride: the vertical and horizontal stride, or an int for both.
        pad_mode: "valid": no padding. "same": pad so that the output's size is the input's size over the stride,
            rounded up. "pad": pad with ``padding``.
        padding: an int or a pair. This and the next three arguments are only for "pad".
        dilation: the spacing of a window's elements.
        return_indices: whether the result is a pair of the values and their positions in the image.
        ceil_mode: whether a window may extend beyond the end.
        data_format: "NCHW".

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range, or an argument for "pad" is used with another mode.
    """

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, data_format)
        if self.pad_mode != "PAD" and (padding != 0 or dilation != 1 or return_indices or ceil_mode):
            text = "'padding', 'dilation', 'return_indices', 'ceil_mode' can not be set to non-default value"
            refuse(ValueError, f"For MaxPool2d, the parameter {text} when pad_mode is not 'pad', but got {pad_mode}")
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def construct(self, x: Any) -> Any:
        """Return the maxima."""
        if self.pad_mode == "SAME":
            top, bottom, left, right = self._same(x)
            least = torch.finfo(x.dtype).min
            x = functional.pad(x, (left, right, top, bottom), value=least)
        places: Any = {"dilation": self.dilation, "return_indices": self.return_indices}
        return functional.max_pool2d(x, self.kernel_size, self.stride, self.padding, ceil_mode=self.ceil_mode, **places)


class AvgPool2d(_Pool2d):
    """The mean of each window of an image.

    Args:
        kernel_size: the window's height and width, or an int for both.
        stride: the vertical and horizontal stride, or an int for both.
        pad_mode: as in MaxPool2d. The mean does not count the zeros of "same".
        padding: an int or a pair, only for "pad".
        ceil_mode: whether a window may extend beyond the end, only for "pad".
        count_include_pad: whether the mean counts the zeros of ``padding``.
        divisor_override: a divisor to use instead of the number of elements.
        data_format: "NCHW".

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range, or there is padding in a mode other than "pad".
    """

    def __init__(
        self,
        kernel_size: Any = 1,
        stride: Any = 1,
        pad_mode: str = "valid",
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
        data_format: str = "NCHW",
    ) -> None:
        super().__init__(kernel_size, stride, pad_mode, data_format)
        if divisor_override is not None and divisor_override <= 0:
            refuse(ValueError, f"For 'AvgPool2d', the 'divisor_override' must be > 0, but got {divisor_override}")
        if self.pad_mode != "PAD" and padding != 0:
            refuse(
                ValueError, f"For 'AvgPool2d', 'padding' must be zero when 'pad_mode' is not 'pad', but got {padding}"
            )
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def construct(self, x: Any) -> Any:
        """Return the means."""
        if self.pad_mode == "SAME":
            top, bottom, left, right = self._same(x)
            inside = functional.pad(torch.ones_like(x), (left, right, top, bottom))
            x = functional.pad(x, (left, right, top, bottom))
            counted = functional.avg_pool2d(inside, self.kernel_size, self.stride)
            return functional.avg_pool2d(x, self.kernel_size, self.stride) / counted
        arguments = (self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)
        return functional.avg_pool2d(x, self.kernel_size, self.stride, *arguments)


class AdaptiveAvgPool2d(Cell):
    """The means of the windows that divide an image into ``output_size`` parts; None keeps an axis's size."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def construct(self, input: Any) -> Any:
        """Return the means."""
        return functional.adaptive_avg_pool2d(input, self.output_size)


def _twice(value: Any) -> tuple[int, int]:
    return (value, value) if isinstance(value, int) else (value[0], value[1])
