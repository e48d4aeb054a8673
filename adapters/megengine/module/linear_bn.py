"""``Linear`` followed by a normalization (source: MegEngine 1.13.0, ``megengine.module.linear_bn``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from collshim.megengine.functional._layers import relu
from collshim.megengine.module.batchnorm import BatchNorm1d
from collshim.megengine.module.linear import Linear
from collshim.megengine.module.module import Module
from collshim.megengine.tensor import Parameter, Tensor


class LinearBn1d(Module):
    """``Linear`` as ``linear``, then ``BatchNorm1d`` as ``bn``; the parameter ``bias`` is not used, as in MegEngine."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, compute_mode: str = "default",
        eps: float = 1e-5, momentum: float = 0.9, affine: bool = True, track_running_stats: bool = True, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.in_features, self.out_features = in_features, out_features
        self.bias = Parameter(np.zeros(out_features, np.float32)) if bias else None
        self.linear = Linear(in_features, out_features, bias, compute_mode, **kwargs)
        self.bn = BatchNorm1d(out_features, eps, momentum, affine, track_running_stats)

    def forward(self, inp: Tensor) -> Tensor:
        """Multiply and normalize."""
        result: Tensor = self.bn(self.linear(inp))
        return result


class LinearBnRelu1d(LinearBn1d):
    """``LinearBn1d`` followed by ``functional.relu``."""

    def forward(self, inp: Tensor) -> Tensor:
        """Multiply, normalize, and apply ``functional.relu``."""
        return relu(super().forward(inp))  # type: ignore[no-any-return]
