"""``Linear`` (source: MegEngine 1.13.0, ``megengine.module.linear``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from collshim.megengine.functional._layers import linear, relu
from collshim.megengine.module import init
from collshim.megengine.module.module import Module
from collshim.megengine.tensor import Parameter, Tensor


class Linear(Module):
    """Multiplies by a weight (out, in) and adds a bias; initial weights have standard deviation ``in ** -0.5``."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, compute_mode: str = "default", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.in_features, self.out_features = in_features, out_features
        self.compute_mode = compute_mode
        self.weight = Parameter(np.zeros((out_features, in_features), np.float32))
        self.bias = Parameter(np.zeros(out_features, np.float32)) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the parameters."""
        init.normal_(self.weight, 0.0, self.in_features**-0.5)
        if self.bias is not None:
            init.zeros_(self.bias)

    def calc_linear(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """Compute ``forward`` with another weight and bias."""
        return linear(x, weight, bias)  # type: ignore[no-any-return]

    def forward(self, x: Tensor) -> Tensor:
        """Apply ``functional.linear``."""
        return self.calc_linear(x, self.weight, self.bias)

    def _module_info_string(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class LinearRelu(Linear):
    """``Linear`` followed by ``functional.relu``."""

    def forward(self, x: Tensor) -> Tensor:
        """Apply ``functional.linear`` and ``functional.relu``."""
        return relu(super().forward(x))  # type: ignore[no-any-return]
