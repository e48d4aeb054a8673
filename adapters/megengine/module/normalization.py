"""Normalizations of single samples (source: MegEngine 1.13.0, ``megengine.module.normalization``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from collshim.megengine.core.tensor.values import ints, require
from collshim.megengine.functional import normalization
from collshim.megengine.module.module import Module
from collshim.megengine.tensor import Parameter


class _Affine(Module):
    """A module with ``weight`` and ``bias`` of one shape, or None."""

    _has_flat_states = True

    def __init__(self, shape: tuple[int, ...], eps: float, affine: bool, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.eps, self.affine = eps, affine
        self.weight = Parameter(np.ones(shape, np.float32)) if affine else None
        self.bias = Parameter(np.zeros(shape, np.float32)) if affine else None


class LayerNorm(_Affine):
    """See ``functional.nn.layer_norm``."""

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, affine: bool = True, **kwargs: Any) -> None:
        self_shape = ints(normalized_shape)
        super().__init__(self_shape, eps, affine, **kwargs)
        self.normalized_shape = self_shape

    def forward(self, x: Any) -> Any:
        """Normalize over the last axes."""
        return normalization.layer_norm(x, self.normalized_shape, self.affine, self.weight, self.bias, self.eps)

    def _module_info_string(self) -> str:
        return f"normalized_shape={self.normalized_shape}, eps={self.eps}, affine={self.affine}"


class GroupNorm(_Affine):
    """See ``functional.nn.group_norm``."""

    def __init__(
        self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True, **kwargs: Any
    ) -> None:
        require(num_channels % num_groups == 0, f"{num_channels} channels cannot be cut into {num_groups} groups")
        super().__init__((num_channels,), eps, affine, **kwargs)
        self.num_groups, self.num_channels = num_groups, num_channels

    def forward(self, x: Any) -> Any:
        """Normalize over groups of channels."""
        return normalization.group_norm(x, self.num_groups, self.affine, self.weight, self.bias, self.eps)

    def _module_info_string(self) -> str:
        return f"groups={self.num_groups}, channels={self.num_channels}, eps={self.eps}, affine={self.affine}"


class InstanceNorm(_Affine):
    """See ``functional.nn.instance_norm``."""

    def __init__(self, num_channels: int, eps: float = 1e-5, affine: bool = True, **kwargs: Any) -> None:
        super().__init__((num_channels,), eps, affine, **kwargs)
        self.num_channels = num_channels

    def forward(self, x: Any) -> Any:
        """Normalize over each channel."""
        return normalization.instance_norm(x, self.affine, self.weight, self.bias, self.eps)

    def _module_info_string(self) -> str:
        return f"channels={self.num_channels}, eps={self.eps}, affine={self.affine}"
