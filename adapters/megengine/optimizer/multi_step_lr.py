"""``MultiStepLR`` (source: MegEngine 1.13.0, ``megengine.optimizer.multi_step_lr``)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from collshim.errors import ArgumentValueError
from collshim.megengine.optimizer.lr_scheduler import LRScheduler
from collshim.megengine.optimizer.optimizer import Optimizer

__all__ = ["MultiStepLR"]


class MultiStepLR(LRScheduler):
    """Multiplies the learning rate by ``gamma`` at each milestone; ValueError unless the milestones increase."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, current_epoch: int = -1
    ) -> None:
        if list(milestones) != sorted(milestones):
            raise ArgumentValueError(f"Milestones should be a list of increasing integers. Got {milestones}")
        self.milestones, self.gamma = milestones, gamma
        super().__init__(optimizer, current_epoch)

    def get_lr(self) -> list[float]:
        """Return the learning rates after the milestones that have passed."""
        return [rate * self.gamma ** bisect_right(self.milestones, self.current_epoch) for rate in self.base_lrs]

    def state_dict(self) -> dict[str, Any]:
        """Return the state without the optimizer."""
        return {name: value for name, value in vars(self).items() if name in ("milestones", "gamma", "current_epoch")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Restore the state that ``state_dict`` returned; the next ``step`` changes the learning rates."""
        self.__dict__.update({name: state_dict[name] for name in ("milestones", "gamma", "current_epoch")})
