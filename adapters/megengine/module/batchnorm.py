"""Batch normalizations (source: MegEngine 1.13.0, ``megengine.module.batchnorm``)."""

from __future__ import annotations

from typing import Any

import numpy as np

from collshim.errors import ArgumentValueError
from collshim.megengine.core.tensor.values import require
from collshim.megengine.distributed._ranks import WORLD, Group
from collshim.megengine.functional.normalization import batch_norm, sync_batch_norm
from collshim.megengine.module import init
from collshim.megengine.module.module import Module
from collshim.megengine.tensor import Parameter, Tensor


class _BatchNorm(Module):
    """Normalizes each channel to mean 0 and variance 1; then scales by ``weight`` and adds ``bias``, each (1, C, 1, 1).

    Args:
        num_features: the number of channels, C.
        eps: a number added to the variance.
        momentum: the weight of the old value in running values: 0.9 here is 0.1 in torch.
        affine: whether the module has ``weight`` and ``bias``.
        track_running_stats: whether the module has running values; if not, evaluation also uses the batch's.
        freeze: whether to use the running values without updating them, and to compute no gradient for ``weight`` and
            ``bias``.
    """

    _has_flat_states = True
    _ndims: tuple[int, ...] = (4,)
    _expected = "4D"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        track_running_stats: bool = True,
        freeze: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        require(track_running_stats or not freeze, "track_running_stats must be initilized to True if freeze is True")
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats, self.freeze = affine, track_running_stats, freeze
        self._track_running_stats_saved = track_running_stats
        zeros = np.zeros((1, num_features, 1, 1), np.float32)
        self.weight = Parameter(zeros + 1) if affine else None
        self.bias = Parameter(zeros) if affine else None
        self.running_mean = Tensor(zeros) if track_running_stats else None
        self.running_var = Tensor(zeros + 1) if track_running_stats else None

    def reset_running_stats(self) -> None:
        """Reset the running values."""
        if self.running_mean is not None and self.running_var is not None:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)

    def reset_parameters(self) -> None:
        """Reset the running values and the parameters."""
        self.reset_running_stats()
        if self.weight is not None and self.bias is not None:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def forward(self, inp: Tensor) -> Tensor:
        """Normalize, see ``functional.nn.batch_norm``; ValueError for a wrong number of axes."""
        self._check_input_ndim(inp)
        require(
            self._track_running_stats_saved or not self.track_running_stats,
            "track_running_stats can not be initilized to False and changed to True later",
        )
        weight, bias = self._affine()
        if self.freeze:
            return self._frozen(inp, weight, bias)
        mean, var = (self.running_mean, self.running_var) if self.track_running_stats else (None, None)
        training = self.training or (self.running_mean is None and self.running_var is None)
        momentum = self._momentum()
        result: Tensor = batch_norm(inp, mean, var, weight, bias, training=training, momentum=momentum, eps=self.eps)
        return result

    def _momentum(self) -> float:
        return self.momentum if self.training and self.track_running_stats else 0.0

    def _frozen(self, inp: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
        result: Tensor = batch_norm(inp, self.running_mean, self.running_var, weight, bias, eps=self.eps)
        return result

    def _affine(self) -> tuple[Tensor | None, Tensor | None]:
        weight, bias = self.weight, self.bias
        if not self.freeze or weight is None or bias is None:
            return weight, bias
        return weight.detach(), bias.detach()

    def _check_input_ndim(self, inp: Tensor) -> None:
        if inp.ndim not in self._ndims:
            raise ArgumentValueError(f"expected {self._expected} input (got {inp.ndim}D input)")

    def _module_info_string(self) -> str:
        text = f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}"
        return f"{text}, track_running_stats={self.track_running_stats}"


class BatchNorm1d(_BatchNorm):
    """Batch normalization of (N, C) or (N, C, L)."""

    _ndims, _expected = (2, 3), "2D or 3D"


class BatchNorm2d(_BatchNorm):
    """Batch normalization of (N, C, H, W)."""


class SyncBatchNorm(_BatchNorm):
    """Batch normalization over all ranks' batches, of (N, C), (N, C, L) or (N, C, H, W); every rank must call it.

    Args:
        group: the ranks that take part; the other arguments are those of ``BatchNorm2d``.
    """

    _ndims, _expected = (2, 3, 4), "2D, 3D or 4D"

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        track_running_stats: bool = True,
        freeze: bool = False,
        group: Group = WORLD,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, freeze, **kwargs)
        self.group = group

    def forward(self, inp: Tensor) -> Tensor:
        """Normalize, see ``functional.nn.sync_batch_norm``; ValueError for a wrong number of axes."""
        self._check_input_ndim(inp)
        whole = inp.reshape(*inp.shape, *[1] * (4 - inp.ndim))
        weight, bias = self._affine()
        has_none = self.running_mean is None and self.running_var is None
        result: Tensor = sync_batch_norm(
            whole,
            self.running_mean,
            self.running_var,
            weight,
            bias,
            training=(self.training and not self.freeze) or has_none,
            momentum=self._momentum(),
            eps=self.eps,
            group=self.group,
        )
        return result.reshape(inp.shape)
