"""``mindspore.nn.SGD`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, is_number
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.nn.optim.optimizer import Optimizer

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent.

    With ``momentum``, ``accum`` starts as the first gradient, and becomes ``momentum * accum + (1 - dampening) *
    gradient`` in each later step; a parameter changes by ``-rate * accum``, or with ``nesterov`` by
    ``-rate * (gradient + momentum * accum)``.

    Args:
        params: the parameters. For the arguments not listed here, see Optimizer.
        momentum: a non-negative float.
        dampening: a non-negative float.
        nesterov: whether to use Nesterov momentum, which needs a ``momentum`` and no ``dampening``.

    Raises:
        TypeError: an argument has the wrong type; ``weight_decay`` cannot be a Cell.
        ValueError: a number is out of range.
    """

    def __init__(
        self,
        params: Any,
        learning_rate: Any = 0.1,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
        loss_scale: float = 1.0,
    ) -> None:
        super().__init__(learning_rate, params, weight_decay, loss_scale)
        beta = self._not_negative("momentum", momentum)
        self.dampening = self._not_negative("dampening", dampening)
        self.nesterov = check_bool(nesterov, "nesterov", self.cls_name)
        if nesterov and (beta <= 0.0 or self.dampening != 0.0):
            text = "if 'nesterov' is true, 'momentum' must be > 0.0 and 'dampening' must equal to 0.0"
            refuse(ValueError, f"For 'SGD', {text}, but got {momentum}, {dampening}")
        if any(isinstance(group.decay, Cell) for group in self._groups):
            refuse(TypeError, "For 'SGD', dynamic weight decay is not supported: 'weight_decay' must be float or int")
        self.momentum = Parameter(torch.tensor(beta), name="momentum")
        self.accum = self.parameters.clone("accum", "zeros")
        self.stat = self.parameters.clone("stat", "ones")

    def _not_negative(self, name: str, value: Any) -> float:
        if not is_number(value, int, float):
            refuse(TypeError, f"For 'SGD', the argument '{name}' must be float type, but got {type(value)}")
        if value < 0.0:
            refuse(ValueError, f"For 'SGD', the argument '{name}' must be at least 0.0, but got {value}")
        return float(value)

    def _update(self, index: int, parameter: Any, gradient: Any, rate: Any, decay: Any) -> None:
        beta = self.momentum.detach()
        if float(beta) > 0.0:
            accum, stat = self.accum[index], self.stat[index]
            if bool((stat > 0).all()):
                accum.copy_(gradient)
                stat.zero_()
            else:
                accum.mul_(beta).add_(gradient * (1 - self.dampening))
            gradient = gradient + beta * accum if self.nesterov else accum
        parameter.sub_((rate * gradient).to(parameter.dtype))
