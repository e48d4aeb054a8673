"""Learning rates by epoch (source: MegEngine 1.13.0, ``megengine.optimizer.lr_scheduler`` and ``multi_step_lr``)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from collshim.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, also
from collshim.megengine.optimizer.optimizer import Optimizer

__all__ = ["LRScheduler", "MultiStepLR"]


class LRScheduler:
    """The base class of schedulers; a subclass implements ``get_lr``, and ``step`` begins an epoch.

    Raises:
        TypeError: ``optimizer`` is not an optimizer.
        KeyError: ``current_epoch`` is not -1, and a group has no ``initial_lr``.
    """

    def __init__(self, optimizer: Optimizer, current_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise ArgumentTypeError("optimizer argument given to the lr_scheduler should be Optimizer")
        self.optimizer = optimizer
        self.current_epoch = current_epoch
        for number, group in enumerate(optimizer.param_groups):
            if current_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise also(ArgumentError, KeyError)(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming an optimizer"
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.step()

    def get_lr(self) -> list[float]:
        """Return the learning rate of each group in this epoch; subclasses implement this."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Begin ``epoch``, by default the next one."""
        self.current_epoch = self.current_epoch + 1 if epoch is None else epoch
        for group, rate in zip(self.optimizer.param_groups, self.get_lr(), strict=True):
            group["lr"] = rate


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
        """Restore the state that ``state_dict`` returned."""
        self.__dict__.update({name: state_dict[name] for name in ("milestones", "gamma", "current_epoch")})
        self.step(self.current_epoch)
