"""``AdamW`` (source: MegEngine 1.13.0, ``megengine.optimizer.adamw``)."""

from __future__ import annotations

from typing import Any

from collshim.megengine.optimizer.adam import Adam


class AdamW(Adam):
    """AdamW (Loshchilov and Hutter, 2019): the weight decay is applied to the parameter, not added to the gradient."""

    def __init__(
        self,
        params: Any,
        lr: float,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay)

    def _decayed(self, parameter: Any, decay: float) -> Any:
        return parameter.grad

    def _kept(self, parameter: Any, group: dict[str, Any]) -> Any:
        return parameter * (1 - group["lr"] * group["weight_decay"])
