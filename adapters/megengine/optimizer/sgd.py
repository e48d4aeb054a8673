"""``SGD`` (source: MegEngine 1.13.0, ``megengine.optimizer.sgd``)."""

from __future__ import annotations

from typing import Any

from collshim.megengine.core.tensor.values import require
from collshim.megengine.optimizer.optimizer import Optimizer


class SGD(Optimizer):
    """Gradient descent: subtracts ``lr`` times the gradient, or times the sum of gradients decayed by ``momentum``.

    Raises:
        AssertionError: a number is below 0, or ``nesterov`` is used without ``momentum``.
    """

    def __init__(
        self, params: Any, lr: float, momentum: float = 0.0, nesterov: bool = False, weight_decay: float = 0.0
    ) -> None:
        require(lr >= 0.0, f"Invalid learning rate: {lr}")
        require(momentum >= 0.0, f"Invalid momentum value: {momentum}")
        require(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        require(not nesterov or momentum > 0.0, "Nesterov momentum requires a momentum")
        super().__init__(params, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.nesterov = nesterov

    def _create_state(self, param_group: dict[str, Any]) -> None:
        if param_group["momentum"] != 0.0:
            for parameter in param_group["params"]:
                self._add_state(parameter, "momentum_buffer")

    def _updates(self, param_group: dict[str, Any]) -> None:
        momentum = param_group["momentum"]
        for parameter, grad, states in self._decayed_gradients(param_group):
            change = grad
            if momentum:
                velocity = states["momentum_buffer"]
                velocity._reset(velocity * momentum + grad)
                change = grad + velocity * momentum if self.nesterov else velocity
            parameter._reset(parameter - change * param_group["lr"])
