"""``Adam`` (source: MegEngine 1.13.0, ``megengine.optimizer.adam``)."""

from __future__ import annotations

from typing import Any

from collshim.megengine.core.tensor.values import require
from collshim.megengine.optimizer.optimizer import Optimizer


class Adam(Optimizer):
    """Adam (Kingma and Ba, 2015).

    Raises:
        AssertionError: a number is below 0, or a beta is 1 or above.
    """

    def __init__(
        self,
        params: Any,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> None:
        require(lr >= 0.0, f"Invalid learning rate: {lr}")
        require(weight_decay >= 0.0, f"Invalid weight_decay value: {weight_decay}")
        for index, beta in enumerate(betas):
            require(0.0 <= beta < 1.0, f"Invalid beta parameter at index {index}: {beta}")
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay, "betas": betas, "eps": eps})

    def _create_state(self, param_group: dict[str, Any]) -> None:
        for parameter in param_group["params"]:
            self._add_state(parameter, "exp_avg")
            self._add_state(parameter, "exp_avg_sq")
            self._add_state(parameter, "step", initializer=0.0)

    def _updates(self, param_group: dict[str, Any]) -> None:
        first, second = param_group["betas"]
        for parameter, grad, states in self._decayed_gradients(param_group):
            step, average, squares = states["step"], states["exp_avg"], states["exp_avg_sq"]
            step += 1
            average._reset(average * first + grad * (1 - first))
            squares._reset(squares * second + grad * grad * (1 - second))
            count = step.item()
            width = (squares / (1 - second**count)) ** 0.5 + param_group["eps"]
            change = average / (1 - first**count) / width
            parameter._reset(self._kept(parameter, param_group) - change * param_group["lr"])

    def _kept(self, parameter: Any, group: dict[str, Any]) -> Any:
        return parameter
