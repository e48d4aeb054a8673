"""Loss scales for ``Model`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from typing import Any

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_int
from collshim.mindspore.nn.wrap.loss_scale import DynamicLossScaleUpdateCell, FixedLossScaleUpdateCell

__all__ = ["DynamicLossScaleManager", "FixedLossScaleManager", "LossScaleManager"]


class LossScaleManager:
    """The base of loss scale managers."""

    def get_loss_scale(self) -> Any:
        """Return the loss scale; derived classes override this."""

    def update_loss_scale(self, overflow: bool) -> None:
        """Update the loss scale after a step; derived classes override this."""

    def get_update_cell(self) -> Any:
        """Return a Cell that updates the loss scale, or None; derived classes override this."""


class FixedLossScaleManager(LossScaleManager):
    """A loss scale that does not change.

    Args:
        loss_scale: the factor, at least 1. If ``drop_overflow_update`` is False, give the optimizer the same
            ``loss_scale``, which divides the gradients by it.
        drop_overflow_update: whether a step is skipped if a gradient is not finite.

    Raises:
        ValueError: ``loss_scale`` is less than 1.
    """

    def __init__(self, loss_scale: float = 128.0, drop_overflow_update: bool = True) -> None:
        if loss_scale < 1:
            refuse(ValueError, f"The argument 'loss_scale' must be >= 1, but got {loss_scale}")
        self._loss_scale, self._drops = loss_scale, drop_overflow_update

    def get_loss_scale(self) -> float:
        """Return the loss scale."""
        return self._loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Return whether a step is skipped if a gradient is not finite."""
        return self._drops

    def get_update_cell(self) -> FixedLossScaleUpdateCell | None:
        """Return the Cell that keeps the loss scale; None if no step is skipped."""
        return FixedLossScaleUpdateCell(self._loss_scale) if self._drops else None


class DynamicLossScaleManager(LossScaleManager):
    """A loss scale that falls after an overflow, and rises after ``scale_window`` steps without one.

    Raises:
        TypeError: ``scale_window`` is not an int.
        ValueError: a number is out of range.
    """

    def __init__(self, init_loss_scale: float = 2**24, scale_factor: int = 2, scale_window: int = 2000) -> None:
        if init_loss_scale < 1.0:
            refuse(ValueError, f"The argument 'init_loss_scale' must be > 1, but got {init_loss_scale}")
        if scale_factor <= 0:
            refuse(ValueError, f"The argument 'scale_factor' must be > 0, but got {scale_factor}")
        self.loss_scale, self.scale_factor = init_loss_scale, scale_factor
        self.scale_window = check_int(scale_window, "scale_window", "DynamicLossScaleManager", least=1)
        self._steps = self._last_change = 0

    def get_loss_scale(self) -> float:
        """Return the loss scale."""
        return self.loss_scale

    def get_drop_overflow_update(self) -> bool:
        """Return True: a step is skipped if a gradient is not finite."""
        return True

    def update_loss_scale(self, overflow: bool) -> None:
        """Update the loss scale after a step."""
        self._steps += 1
        if overflow:
            self.loss_scale = max(self.loss_scale / self.scale_factor, 1)
        elif self._steps - self._last_change >= self.scale_window:
            self.loss_scale *= self.scale_factor
        else:
            return
        self._last_change = self._steps

    def get_update_cell(self) -> DynamicLossScaleUpdateCell:
        """Return a Cell that updates the loss scale."""
        return DynamicLossScaleUpdateCell(self.loss_scale, self.scale_factor, self.scale_window)
