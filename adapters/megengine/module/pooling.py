"""Pooling (source: MegEngine 1.13.0, ``megengine.module.pooling`` and ``adaptive_pooling``)."""

from __future__ import annotations

from typing import Any

from collshim.megengine.functional import _layers
from collshim.megengine.module.module import Module


class MaxPool2d(Module):
    """See ``functional.max_pool2d``."""

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kernel_size, self.stride, self.padding = kernel_size, stride or kernel_size, padding

    def forward(self, inp: Any) -> Any:
        """Return the greatest element of each window."""
        return _layers.max_pool2d(inp, self.kernel_size, self.stride, self.padding)

    def _module_info_string(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(MaxPool2d):
    """See ``functional.avg_pool2d``."""

    def __init__(
        self, kernel_size: Any, stride: Any = None, padding: Any = 0, mode: str = "average_count_exclude_padding",
        **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(kernel_size, stride, padding, **kwargs)
        self.mode = mode

    def forward(self, inp: Any) -> Any:
        """Return the mean of each window."""
        return _layers.avg_pool2d(inp, self.kernel_size, self.stride, self.padding, self.mode)

    def _module_info_string(self) -> str:
        return f"{super()._module_info_string()}, mode={self.mode}"


class AdaptiveAvgPool2d(Module):
    """See ``functional.adaptive_avg_pool2d``."""

    def __init__(self, oshp: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.oshp = oshp

    def forward(self, inp: Any) -> Any:
        """Return the mean of each window."""
        return _layers.adaptive_avg_pool2d(inp, self.oshp)


class AdaptiveMaxPool2d(AdaptiveAvgPool2d):
    """See ``functional.adaptive_max_pool2d``."""

    def forward(self, inp: Any) -> Any:
        """Return the greatest element of each window."""
        return _layers.adaptive_max_pool2d(inp, self.oshp)
