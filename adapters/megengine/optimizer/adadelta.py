"""``Adadelta`` (source: MegEngine 1.13.0, ``megengine.optimizer.adadelta``)."""

from __future__ import annotations

from typing import Any

from collshim.megengine.core.tensor.values import require
from collshim.megengine.optimizer.optimizer import Optimizer


class Adadelta(Optimizer):
    """Adadelta (Zeiler, 2012): scales the gradient by the averages of squared changes and of squared gradients.

    Raises:
        AssertionError: a number is below 0, or ``rho`` is above 1.
    """

    def __init__(
        self, params: Any, lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0.0
    ) -> None:
        require(lr >= 0.0, f"Invalid learning rate: {lr}")
        require(0.0 <= rho <= 1.0, f"Invalid rho value: {rho}")
        require(eps >= 0.0, f"Invalid epsilon value: {eps}")
        require(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        super().__init__(params, {"lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay})

    def _create_state(self, param_group: dict[str, Any]) -> None:
        for parameter in param_group["params"]:
            self._add_state(parameter, "square_avg")
            self._add_state(parameter, "acc_delta")
            self._add_state(parameter, "step", initializer=0.0)

    def _updates(self, param_group: dict[str, Any]) -> None:
        rho, eps = param_group["rho"], param_group["eps"]
        for parameter, grad, states in self._decayed_gradients(param_group):
            step, squares, changes = states["step"], states["square_avg"], states["acc_delta"]
            step += 1
            squares._reset(squares * rho + grad * grad * (1 - rho))
            change = (changes + eps) ** 0.5 / (squares + eps) ** 0.5 * grad
            parameter._reset(parameter - change * param_group["lr"])
            changes._reset(changes * rho + change * change * (1 - rho))
