"""Learning-rate schedules, Cells of ``mindspore.nn`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

import math
from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, check_float, check_int
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.tensor import Tensor

__all__ = [
    "CosineDecayLR",
    "ExponentialDecayLR",
    "InverseDecayLR",
    "NaturalExpDecayLR",
    "PolynomialDecayLR",
    "WarmUpLR",
]


class LearningRateSchedule(Cell):
    """The base of schedules: ``construct(global_step)`` returns the learning rate."""

    def __init__(self) -> None:
        super().__init__()


class _Decay(LearningRateSchedule):
    """A decay of ``learning_rate`` by ``decay_rate`` every ``decay_steps``; with ``is_stair``, in discrete steps."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        super().__init__()
        self.learning_rate = check_float(learning_rate, "learning_rate", self.cls_name, 0.0, ends="(]")
        self.decay_rate = check_float(decay_rate, "decay_rate", self.cls_name, 0.0, ends="(]")
        self.decay_steps = check_int(decay_steps, "decay_steps", self.cls_name, least=1)
        self.is_stair = check_bool(is_stair, "is_stair", self.cls_name)

    def _periods(self, global_step: Any) -> Any:
        periods = _number(global_step) / self.decay_steps
        return torch.floor(periods) if self.is_stair else periods


class ExponentialDecayLR(_Decay):
    """``learning_rate * decay_rate ** (step / decay_steps)``."""

    def construct(self, global_step: Any) -> Any:
        """Return the learning rate at this step."""
        return self.learning_rate * self.decay_rate ** self._periods(global_step)


class NaturalExpDecayLR(_Decay):
    """``learning_rate * exp(-decay_rate * step)``; ``is_stair`` rounds step down to a multiple of ``decay_steps``."""

    def construct(self, global_step: Any) -> Any:
        """Return the learning rate at this step."""
        step = self._periods(global_step) * self.decay_steps if self.is_stair else _number(global_step)
        return self.learning_rate * math.e ** (-self.decay_rate * step)


class InverseDecayLR(_Decay):
    """``learning_rate / (1 + decay_rate * step / decay_steps)``."""

    def construct(self, global_step: Any) -> Any:
        """Return the learning rate at this step."""
        return self.learning_rate / (1 + self.decay_rate * self._periods(global_step))


class CosineDecayLR(LearningRateSchedule):
    """A half cosine from ``max_lr`` to ``min_lr`` over ``decay_steps`` steps."""

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__()
        self.min_lr = check_float(min_lr, "min_lr", self.cls_name, 0.0)
        self.max_lr = check_float(max_lr, "max_lr", self.cls_name, 0.0, ends="(]")
        self.decay_steps = check_int(decay_steps, "decay_steps", self.cls_name, least=1)
        _require_order(min_lr, max_lr, self.cls_name)

    def construct(self, global_step: Any) -> Any:
        """Return the learning rate at this step."""
        part = _number(global_step).clamp(max=self.decay_steps) / self.decay_steps
        half = 0.5 * (self.max_lr - self.min_lr)
        return self.min_lr + half * (1.0 + torch.sin(math.pi * (part + 0.5)))


class PolynomialDecayLR(LearningRateSchedule):
    """A decay from ``learning_rate`` to ``end_learning_rate``, proportional to ``(1 - step / decay_steps) ** power``.

    With ``update_decay_steps``, ``decay_steps`` is rounded up to its smallest multiple that is not below the
    step.
    """

    def __init__(
        self,
        learning_rate: float,
        end_learning_rate: float,
        decay_steps: int,
        power: float,
        update_decay_steps: bool = False,
    ) -> None:
        super().__init__()
        self.start_learning_rate = check_float(learning_rate, "learning_rate", self.cls_name, 0.0, ends="(]")
        self.end_learning_rate = check_float(end_learning_rate, "end_learning_rate", self.cls_name, 0.0)
        self.decay_steps = check_int(decay_steps, "decay_steps", self.cls_name, least=1)
        self.power = check_float(power, "power", self.cls_name, 0.0, ends="(]")
        self.update_decay_steps = check_bool(update_decay_steps, "update_decay_steps", self.cls_name)

    def construct(self, global_step: Any) -> Any:
        """Return the learning rate at this step."""
        step, steps = _number(global_step), self.decay_steps
        if self.update_decay_steps:
            part = step / (steps * torch.ceil(step / steps).clamp(min=1))
        else:
            part = step.clamp(max=steps) / steps
        difference = self.start_learning_rate - self.end_learning_rate
        return difference * (1.0 - part) ** self.power + self.end_learning_rate


class WarmUpLR(LearningRateSchedule):
    """A linear rise from 0 to ``learning_rate`` over ``warmup_steps`` steps."""

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__()
        self.learning_rate = check_float(learning_rate, "learning_rate", self.cls_name, 0.0)
        self.warmup_steps = check_int(warmup_steps, "warmup_steps", self.cls_name, least=1)

    def construct(self, global_step: Any) -> Any:
        """Return the learning rate at this step."""
        return self.learning_rate * (_number(global_step).clamp(max=self.warmup_steps) / self.warmup_steps)


def _number(global_step: Any) -> Tensor:
    """Return a step, a tensor or a number, in float32."""
    return Tensor(global_step, torch.float32)


def _require_order(low: float, high: float, of: str) -> None:
    if low >= high:
        text = f"the 'max_lr' must be greater than the 'min_lr', but got 'max_lr': {high}, 'min_lr': {low}"
        refuse(ValueError, f"For {of!r}, {text}")
