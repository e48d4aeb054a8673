"""``mindspore.nn.Adam`` and ``AdamWeightDecay`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, check_float
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.nn.optim.optimizer import Optimizer
from collshim.mindspore.tensor import Tensor

__all__ = ["Adam", "AdamWeightDecay"]


class Adam(Optimizer):
    """Adam, with the weight decay added to the gradient.

    ``m = m + (1 - beta1) * (g - m)``, ``v = v + (1 - beta2) * (g * g - v)``; a parameter changes by ``-rate *
    sqrt(1 - beta2 ** t) / (1 - beta1 ** t) * m / (sqrt(v) + eps)``.

    Args:
        params: the parameters. For the arguments not listed here, see Optimizer.
        beta1: the decay of the first moments, a float between 0 and 1; ``beta2`` is that of the second ones.
        eps: a positive float.
        use_locking: has no effect.
        use_nesterov: whether the update uses ``beta1 * m + (1 - beta1) * g`` instead of ``m``.
        use_amsgrad: whether the update uses the maximum of ``v`` so far instead of ``v``.
        kwargs: ``use_lazy`` and ``use_offload``, which have no effect on dense gradients.

    Raises:
        KeyError: an unknown keyword.
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range, or two options exclude each other.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-8,
        use_locking: bool = False,
        use_nesterov: bool = False,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
        use_amsgrad: bool = False,
        **kwargs: bool,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        self.beta1, self.beta2, self.eps = _checked(beta1, beta2, eps, self.cls_name)
        self.use_nesterov = check_bool(use_nesterov, "use_nesterov", self.cls_name)
        self.use_amsgrad = check_bool(use_amsgrad, "use_amsgrad", self.cls_name)
        check_bool(use_locking, "use_locking", self.cls_name)
        self._require_options(kwargs)
        self.beta1_power = Parameter(torch.ones(()), name="beta1_power")
        self.beta2_power = Parameter(torch.ones(()), name="beta2_power")
        self.moment1 = self.parameters.clone("moment1", "zeros")
        self.moment2 = self.parameters.clone("moment2", "zeros")
        if use_amsgrad:
            self.vhat = self.parameters.clone("vhat", "zeros")

    def _require_options(self, options: dict[str, bool]) -> None:
        if set(options) - {"use_lazy", "use_offload"}:
            text = f"the keywords beside the named ones are 'use_lazy' and 'use_offload', but got {list(options)}"
            refuse(KeyError, f"For 'Adam', {text}")
        chosen = [name for name, value in options.items() if check_bool(value, name, self.cls_name)]
        if len(chosen) + self.use_amsgrad > 1:
            refuse(
                ValueError, f"For 'Adam', {' and '.join(chosen)} cannot be True with each other or with 'use_amsgrad'"
            )

    def _begin(self) -> None:
        self.beta1_power.mul_(self.beta1)
        self.beta2_power.mul_(self.beta2)

    def _update(self, index: int, parameter: Any, gradient: Any, rate: Any, decay: Any) -> None:
        first, second = self.moment1[index], self.moment2[index]
        greatest: Any = second
        rate = rate * torch.sqrt(1 - self.beta2_power) / (1 - self.beta1_power)
        first.add_((gradient - first) * (1 - self.beta1))
        second.add_((gradient * gradient - second) * (1 - self.beta2))
        if self.use_amsgrad:
            greatest = self.vhat[index].copy_(torch.maximum(self.vhat[index], second))
        towards = first * self.beta1 + (1 - self.beta1) * gradient if self.use_nesterov else first
        parameter.sub_((rate * towards / (torch.sqrt(greatest) + self.eps)).to(parameter.dtype))


class AdamWeightDecay(Optimizer):
    """AdamW: Adam with decoupled weight decay, and without bias correction.

    ``m = beta1 * m + (1 - beta1) * g``, ``v = beta2 * v + (1 - beta2) * g * g``; a parameter changes by ``-rate *
    (m / (sqrt(v) + eps) + weight_decay * parameter)``.

    Args:
        params: the parameters. For the arguments not listed here, see Optimizer.
        beta1: the decay of the first moments, a float between 0 and 1; ``beta2`` is that of the second ones.
        eps: a positive float.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.
    """

    _decays_gradients = False

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 1e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        eps: float = 1e-6,
        weight_decay: Any = 0.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay)
        self.beta1, self.beta2, self.eps = _checked(beta1, beta2, eps, self.cls_name)
        self.moments1 = self.parameters.clone("adam_m", "zeros")
        self.moments2 = self.parameters.clone("adam_v", "zeros")

    def _update(self, index: int, parameter: Any, gradient: Any, rate: Any, decay: Any) -> None:
        first, second = self.moments1[index], self.moments2[index]
        first.mul_(self.beta1).add_(gradient * (1 - self.beta1))
        second.mul_(self.beta2).add_(gradient * gradient * (1 - self.beta2))
        step = first / (torch.sqrt(second) + self.eps)
        if isinstance(decay, torch.Tensor) or decay > 0:
            step = step + decay * parameter
        parameter.sub_((rate * step).to(parameter.dtype))


def _checked(beta1: float, beta2: float, eps: float, of: str) -> tuple[Tensor, Tensor, Tensor]:
    """Return the numbers as float32, in which MindSpore computes with them."""
    check_float(beta1, "beta1", of, 0.0, 1.0, "()")
    check_float(beta2, "beta2", of, 0.0, 1.0, "()")
    check_float(eps, "eps", of, 0.0, ends="(]")
    return Tensor(beta1), Tensor(beta2), Tensor(eps)
