"""``BatchNorm1d``, ``BatchNorm2d``, ``GroupNorm`` and ``LayerNorm`` of ``mindspore.nn`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_int, check_type
from collshim.mindspore.common.initializer import initializer
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.nn.layer.padding import require_channels_first

__all__ = ["BatchNorm1d", "BatchNorm2d", "GroupNorm", "LayerNorm"]


class _BatchNorm(Cell):
    """Batch normalization of inputs with ``_RANKS`` axes; see BatchNorm2d."""

    _RANKS: tuple[int, ...] = ()

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.9,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        moving_mean_init: Any = "zeros",
        moving_var_init: Any = "ones",
        use_batch_statistics: bool | None = None,
        data_format: str = "NCHW",
        dtype: Any = torch.float32,
    ) -> None:
        super().__init__()
        self.num_features = check_int(num_features, "num_features", self.cls_name, least=1)
        if not 0 <= momentum <= 1:
            text = f"the 'momentum' must be a number in range [0, 1], but got {momentum}"
            refuse(ValueError, f"For {self.cls_name!r}, {text}")
        if not isinstance(use_batch_statistics, bool | None):
            text = f"the 'use_batch_statistics' must be a boolean value or None, but got {use_batch_statistics}"
            refuse(ValueError, f"For {self.cls_name!r}, {text}")
        require_channels_first(data_format, self.cls_name)
        self.eps, self.momentum, self.use_batch_statistics = eps, 1.0 - momentum, use_batch_statistics

        def made(name: str, rule: Any, trained: bool) -> Parameter:
            return Parameter(initializer(rule, num_features, dtype), name=name, requires_grad=trained)

        self.moving_mean = made("mean", moving_mean_init, False)
        self.moving_variance = made("variance", moving_var_init, False)
        self.gamma, self.beta = made("gamma", gamma_init, affine), made("beta", beta_init, affine)

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        if x.dim() not in self._RANKS:
            wanted = " or ".join(f"{rank}D" for rank in self._RANKS)
            refuse(ValueError, f"For {self.cls_name!r}, the input must be {wanted}, but got the shape {tuple(x.shape)}")
        trains = self.training if self.use_batch_statistics is None else self.use_batch_statistics
        if not trains:
            moving = self.moving_mean, self.moving_variance
            return functional.batch_norm(x, *moving, self.gamma, self.beta, False, 0.0, self.eps)
        with torch.no_grad():
            self._follow(x.detach())
        return functional.batch_norm(x, None, None, self.gamma, self.beta, True, 0.0, self.eps)

    def _follow(self, x: torch.Tensor) -> None:
        """Update the moving mean and variance with the batch's mean and unbiased variance."""
        axes = [axis for axis in range(x.dim()) if axis != 1]
        correction = 1 if x.numel() > x.size(1) else 0
        variance, mean = torch.var_mean(x, axes, correction=correction)
        self.moving_mean.lerp_(mean.to(self.moving_mean.dtype), self.momentum)
        self.moving_variance.lerp_(variance.to(self.moving_variance.dtype), self.momentum)

    def extend_repr(self) -> str:
        """Return the settings as text for ``repr``."""
        names = ("gamma", "beta", "moving_mean", "moving_variance")
        parameters = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        return f"num_features={self.num_features}, eps={self.eps}, momentum={1.0 - self.momentum}, {parameters}"


class BatchNorm1d(_BatchNorm):
    """Batch normalization of inputs (N, C) or (N, C, L); otherwise like BatchNorm2d."""

    _RANKS = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalization of inputs (N, C, H, W).

    Each channel becomes ``(x - mean) / sqrt(variance + eps) * gamma + beta``. In training, the mean and variance are
    those of this rank's batch, and the moving ones become ``momentum * moving + (1 - momentum) * batch``. Otherwise the
    moving ones are used.

    Args:
        num_features: the number of channels.
        eps: the number added to the variance.
        momentum: the share of the moving mean and variance that is kept, from 0 to 1.
        affine: whether ``gamma`` and ``beta`` are trained.
        gamma_init: the initializer of ``gamma``. The next three are those of ``beta``, ``moving_mean`` and
            ``moving_variance``.
        use_batch_statistics: whether the batch's mean and variance are used; None uses them in training.
        data_format: "NCHW".
        dtype: the parameters' dtype.

    Raises:
        TypeError: ``num_features`` is not an int.
        ValueError: a number is out of range; in a call, the input has the wrong number of axes.
    """

    _RANKS = (4,)


class LayerNorm(Cell):
    """Layer normalization: each sample becomes ``(x - mean) / sqrt(variance + epsilon) * gamma + beta``.

    Args:
        normalized_shape: the shape of ``gamma`` and ``beta``: the input's shape from ``begin_params_axis`` on.
        begin_norm_axis: the first axis over which mean and variance are computed; -1 or not negative.
        begin_params_axis: the first axis of ``gamma`` and ``beta``; -1 or not negative.
        gamma_init: the initializer of ``gamma``.
        beta_init: the initializer of ``beta``.
        epsilon: the number added to the variance.
        dtype: the parameters' dtype.

    Raises:
        TypeError: ``normalized_shape`` is not a tuple or a list.
        RuntimeError: in a call, an axis is less than -1, or beyond the input's.
        ValueError: in a call, ``normalized_shape`` is not the input's shape from ``begin_params_axis`` on.
    """

    def __init__(
        self,
        normalized_shape: Any,
        begin_norm_axis: int = -1,
        begin_params_axis: int = -1,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        epsilon: float = 1e-7,
        dtype: Any = torch.float32,
    ) -> None:
        super().__init__()
        self.normalized_shape = check_type(normalized_shape, "normalized_shape", self.cls_name, tuple, list)
        self.begin_norm_axis, self.begin_params_axis = begin_norm_axis, begin_params_axis
        self.epsilon = epsilon
        self.gamma = Parameter(initializer(gamma_init, normalized_shape, dtype), name="gamma")
        self.beta = Parameter(initializer(beta_init, normalized_shape, dtype), name="beta")

    def construct(self, input_x: Any) -> Any:
        """Return the result, in the shape of the input."""
        for axis in (self.begin_norm_axis, self.begin_params_axis):
            if not -1 <= axis < input_x.dim():
                refuse(
                    RuntimeError, f"For 'LayerNorm', an axis should be from -1 to {input_x.dim() - 1}, but got {axis}"
                )
        if tuple(self.normalized_shape) != tuple(input_x.shape[self.begin_params_axis :]):
            text = f"the shape of gamma should be that of the input from axis {self.begin_params_axis} on"
            shapes = f"but got {tuple(self.normalized_shape)} for {tuple(input_x.shape)}"
            refuse(ValueError, f"For 'LayerNorm', {text}, {shapes}")
        axes = list(range(self.begin_norm_axis % input_x.dim(), input_x.dim()))
        variance, mean = torch.var_mean(input_x, axes, correction=0, keepdim=True)
        normalized = (input_x - mean) * torch.rsqrt(variance + self.epsilon)
        return normalized * self.gamma.to(input_x.dtype) + self.beta.to(input_x.dtype)

    def extend_repr(self) -> str:
        """Return the settings as text for ``repr``."""
        axes = f"begin_norm_axis={self.begin_norm_axis}, begin_params_axis={self.begin_params_axis}"
        return f"normalized_shape={self.normalized_shape}, {axes}, gamma{self.gamma}, beta={self.beta}"


class GroupNorm(Cell):
    """Normalization of each row's channels, in groups: ``(x - mean) / sqrt(variance + eps) * gamma + beta``.

    Args:
        num_groups: the number of groups, which divides the number of channels.
        num_channels: the number of channels.
        eps: the number added to the variance.
        affine: whether ``gamma`` and ``beta`` are trained.
        gamma_init: the initializer of ``gamma``.
        beta_init: the initializer of ``beta``.
        dtype: the parameters' dtype.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range; in a call, the input has another number of channels.
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        gamma_init: Any = "ones",
        beta_init: Any = "zeros",
        dtype: Any = torch.float32,
    ) -> None:
        super().__init__()
        self.num_groups = check_int(num_groups, "num_groups", self.cls_name, least=1)
        self.num_channels = check_int(num_channels, "num_channels", self.cls_name, least=1)
        if num_channels % num_groups:
            text = f"must be divided by 'num_groups', but got {num_channels} and {num_groups}"
            refuse(ValueError, f"For 'GroupNorm', the 'num_channels' {text}.")
        self.eps, self.affine = eps, check_type(affine, "affine", self.cls_name, bool)
        gamma, beta = initializer(gamma_init, num_channels, dtype), initializer(beta_init, num_channels, dtype)
        self.gamma = Parameter(gamma, name="gamma", requires_grad=affine)
        self.beta = Parameter(beta, name="beta", requires_grad=affine)

    def construct(self, x: Any) -> Any:
        """Return the result, in the shape of the input."""
        if x.dim() < 2 or x.shape[1] != self.num_channels:
            text = f"the input must have {self.num_channels} channels, but got the shape {tuple(x.shape)}"
            refuse(ValueError, f"For 'GroupNorm', {text}")
        return functional.group_norm(x, self.num_groups, self.gamma.to(x.dtype), self.beta.to(x.dtype), self.eps)

    def extend_repr(self) -> str:
        """Return the settings as text for ``repr``."""
        return f"num_groups={self.num_groups}, num_channels={self.num_channels}"
