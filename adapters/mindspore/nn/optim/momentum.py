"""``mindspore.nn.Momentum`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch

from collshim.mindspore._checkparam import check_bool, check_float
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.nn.optim.optimizer import Optimizer

__all__ = ["Momentum"]


class Momentum(Optimizer):
    """Gradient descent with momentum: ``moment = momentum * moment + gradient``.

    A parameter changes by ``-rate * moment``, or with ``use_nesterov`` by ``-rate * (gradient + momentum * moment)``.

    Args:
        params: the parameters. For the arguments not listed here, see Optimizer.
        momentum: a non-negative float.
        use_nesterov: whether to use Nesterov momentum.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any,
        momentum: float,
        weight_decay: Any = 0.0,
        loss_scale: float = 1.0,
        use_nesterov: bool = False,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        check_float(momentum, "momentum", self.cls_name, 0.0)
        self.momentum = Parameter(torch.tensor(momentum), name="momentum")
        self.params = self.parameters
        self.use_nesterov = check_bool(use_nesterov, "use_nesterov", self.cls_name)
        self.moments = self.parameters.clone("moments", "zeros")

    def _update(self, index: int, parameter: Any, gradient: Any, rate: Any, decay: Any) -> None:
        beta, moment = self.momentum.detach(), self.moments[index]
        moment.mul_(beta).add_(gradient)
        step = gradient + beta * moment if self.use_nesterov else moment
        parameter.sub_((rate * step).to(parameter.dtype))
