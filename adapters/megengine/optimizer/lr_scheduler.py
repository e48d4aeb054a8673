"""Learning rates by epoch (source: MegEngine 1.13.0, ``megengine.optimizer.lr_scheduler``)."""

from __future__ import annotations

from collshim.errors import ArgumentError, ArgumentTypeError, also
from collshim.megengine.optimizer.optimizer import Optimizer

__all__ = ["LRScheduler"]


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
