"""``mindspore.mint.optim.Adam`` and ``AdamW`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

import math
from typing import Any, cast

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_value_type
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.mint.optim.optimizer import Optimizer, require_at_least

__all__ = ["Adam", "AdamW"]


class Adam(Optimizer):
    """Adam, with bias correction; the weight decay is added to the gradient.

    Args:
        params: the parameters; see Optimizer.
        lr: the learning rate, a float.
        betas: the decays of the first and second moments, floats from 0 to below 1.
        eps: a non-negative float.
        weight_decay: a non-negative float.
        amsgrad: whether the update uses the maximum of the second moments so far.
        maximize: whether the parameters follow the gradient upwards.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.
    """

    _STATES = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        of = type(self).__name__
        _check_numbers(of, lr=lr, eps=eps, weight_decay=weight_decay)
        _check_betas(of, betas)
        for name, value in (("amsgrad", amsgrad), ("maximize", maximize)):
            check_value_type(name, value, [bool], of)
        own = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "amsgrad": amsgrad}
        super().__init__(params, own | {"maximize": maximize})
        self.state_step = Parameter(torch.zeros(1), name="state_step", requires_grad=False)
        self._greatest: dict[int, torch.Tensor] = {}

    def _begin(self) -> None:
        self.state_step.add_(1)

    def _update(self, index: int, group: dict[str, Any], parameter: Any, gradient: Any) -> None:
        rate, (beta1, beta2), step = float(group["lr"]), group["betas"], int(self.state_step)
        first, second = self.exp_avg[index], cast(torch.Tensor, self.exp_avg_sq[index])
        gradient = self._decayed(group, parameter, gradient)
        first.lerp_(gradient.to(first.dtype), 1 - beta1)
        second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        if group["amsgrad"]:
            second = self._greatest[index] = torch.maximum(self._greatest.get(index, second), second)
        root = torch.sqrt(second) / math.sqrt(1 - beta2**step) + group["eps"]
        parameter.sub_((rate / (1 - beta1**step) * first / root).to(parameter.dtype))

    def _decayed(self, group: dict[str, Any], parameter: Any, gradient: Any) -> Any:
        """Return the gradient with the weight decay."""
        return gradient + group["weight_decay"] * parameter if group["weight_decay"] else gradient


class AdamW(Adam):
    """Adam with decoupled weight decay: in each step, a parameter is first multiplied by ``1 - lr * weight_decay``."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)

    def _decayed(self, group: dict[str, Any], parameter: Any, gradient: Any) -> Any:
        parameter.mul_(1 - float(group["lr"]) * group["weight_decay"])
        return gradient


def _check_numbers(of: str, **numbers: Any) -> None:
    texts = {"lr": "learning rate", "eps": "epsilon value", "weight_decay": "weight_decay value"}
    for name, value in numbers.items():
        require_at_least(check_value_type(name, value, [float], of), texts[name])


def _check_betas(of: str, betas: Any) -> None:
    for place, beta in enumerate(check_value_type("betas", betas, [tuple], of)):
        if not 0.0 <= check_value_type(f"betas[{place}]", beta, [float], of) < 1.0:
            refuse(ValueError, f"Invalid beta parameter at index {place}: {beta}")
