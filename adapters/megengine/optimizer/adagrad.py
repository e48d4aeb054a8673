"""``Adagrad`` (source: MegEngine 1.13.0, ``megengine.optimizer.adagrad``)."""

from __future__ import annotations

from typing import Any

from collshim.megengine.core.tensor.values import require
from collshim.megengine.optimizer.optimizer import Optimizer


class Adagrad(Optimizer):
    """Adagrad (Duchi et al., 2011): divides the gradient by the square root of the sum of all squared gradients.

    Raises:
        AssertionError: a number is below 0.
    """

    def __init__(
        self, params: Any, lr: float = 1e-2, lr_decay: float = 0.0, eps: float = 1e-10, weight_decay: float = 0.0
    ) -> None:
        require(lr >= 0.0, f"Invalid learning rate: {lr}")
        require(lr_decay >= 0, f"Invalid learning rate decay: {lr_decay}")
        require(eps >= 0.0, f"Invalid epsilon value: {eps}")
        require(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        super().__init__(params, {"lr": lr, "lr_decay": lr_decay, "eps": eps, "weight_decay": weight_decay})

    def _create_state(self, param_group: dict[str, Any]) -> None:
        for parameter in param_group["params"]:
            self._add_state(parameter, "square_avg")
            self._add_state(parameter, "step", initializer=0.0)

    def _updates(self, param_group: dict[str, Any]) -> None:
        for parameter, grad, states in self._decayed_gradients(param_group):
            step, squares = states["step"], states["square_avg"]
            step += 1
            squares += grad * grad
            rate = param_group["lr"] / (1 + (step.item() - 1) * param_group["lr_decay"])
            parameter._reset(parameter - grad / (squares + param_group["eps"]) ** 0.5 * rate)
