"""``mindspore.mint.optim.SGD`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_value_type
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.mint.optim.optimizer import Optimizer, require_at_least

__all__ = ["SGD"]


class SGD(Optimizer):
    """Stochastic gradient descent, with torch's momentum.

    ``buf`` starts as the first gradient, and becomes ``momentum * buf + (1 - dampening) * gradient`` in each later
    step; a parameter changes by ``-lr * buf``, or with ``nesterov`` by ``-lr * (gradient + momentum * buf)``.

    Args:
        params: the parameters; see Optimizer.
        lr: the learning rate.
        momentum: a non-negative number.
        dampening: a number.
        weight_decay: a non-negative number; the parameter times it is added to the gradient.
        nesterov: whether to use Nesterov momentum, which needs a ``momentum`` and no ``dampening``.
        maximize: whether the parameters follow the gradient upwards.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.
    """

    _STATES = ("momentum_buf",)

    def __init__(
        self,
        params: Any,
        lr: float,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
    ) -> None:
        numbers = {"momentum": momentum, "weight_decay": weight_decay, "dampening": dampening}
        for name, value in numbers.items():
            check_value_type(name, value, [float, int, bool], "SGD")
        for name, value in (("nesterov", nesterov), ("maximize", maximize)):
            check_value_type(name, value, [bool], "SGD")
        require_at_least(lr, "learning rate")
        require_at_least(momentum, "momentum value")
        require_at_least(weight_decay, "weight_decay value")
        if nesterov and (momentum <= 0 or dampening != 0):
            text = f"but got 'momentum' {momentum}, 'dampening' {dampening}"
            refuse(
                ValueError,
                f"For 'SGD', if 'nesterov' is true, 'momentum' must be > 0.0 and 'dampening' must equal to 0.0, {text}",
            )
        rest = {"nesterov": nesterov, "maximize": maximize, "lr_float": float(lr)}
        super().__init__(params, {"lr": lr, **numbers, **rest})
        self.step_t = Parameter(torch.zeros((), dtype=torch.int32), name="step_t", requires_grad=False)

    def _begin(self) -> None:
        self.step_t.add_(1)

    def _update(self, index: int, group: dict[str, Any], parameter: Any, gradient: Any) -> None:
        if group["weight_decay"]:
            gradient = gradient + group["weight_decay"] * parameter
        if group["momentum"]:
            buffer = self.momentum_buf[index]
            if int(self.step_t) == 1:
                buffer.copy_(gradient)
            else:
                buffer.mul_(group["momentum"]).add_(gradient * (1 - group["dampening"]))
            gradient = gradient + group["momentum"] * buffer if group["nesterov"] else buffer
        parameter.sub_((float(group["lr"]) * gradient).to(parameter.dtype))
