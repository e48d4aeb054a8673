"""``mindspore.mint.nn``: layers of ``nn`` with torch's names and arguments (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.mindspore.mint.nn import functional
from collshim.mindspore.nn.layer.activation import ReLU, ReLU6, Sigmoid, SiLU, Tanh
from collshim.mindspore.nn.layer.basic import Dense, Flatten, Identity
from collshim.mindspore.nn.loss.loss import L1Loss, MSELoss

__all__ = [
    "Flatten",
    "Identity",
    "L1Loss",
    "Linear",
    "MSELoss",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Tanh",
    "functional",
]


class Linear(Dense):
    """``nn.Dense`` with torch's argument names."""

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        weight_init: Any = None,
        bias_init: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(in_features, out_features, weight_init, bias_init, bias, dtype=dtype or torch.float32)

    def extend_repr(self) -> str:
        """Return the settings as text for ``repr``."""
        text = f"input_features={self.in_channels}, output_features={self.out_channels}"
        return f"{text}, has_bias={self.has_bias}" if self.has_bias else text


__getattr__ = saying(__name__, "use mindspore.nn")
