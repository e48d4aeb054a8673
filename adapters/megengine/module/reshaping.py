"""Padding and moving of pixels (source: MegEngine 1.13.0, ``megengine.module.padding`` and ``pixel_shuffle``)."""

from __future__ import annotations

from typing import Any

from collshim.megengine.functional import _layers
from collshim.megengine.module.module import Module


class Pad(Module):
    """See ``functional.pad``."""

    def __init__(self, pad_width: Any, mode: str = "constant", constant_val: float = 0.0) -> None:
        super().__init__()
        self.pad_width, self.mode, self.pad_val = pad_width, mode, constant_val

    def forward(self, src: Any) -> Any:
        """Pad the tensor."""
        return _layers.pad(src, self.pad_width, self.mode, self.pad_val)


class PixelShuffle(Module):
    """See ``functional.pixel_shuffle``."""

    def __init__(self, upscale_factor: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.upscale_factor = upscale_factor

    def forward(self, x: Any) -> Any:
        """Move channels into the last two axes."""
        return _layers.pixel_shuffle(x, self.upscale_factor)
