"""``mindspore.amp``: mixed precision and scales of losses (source: MindSpore 2.10.0)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_int, check_value_type
from collshim.mindspore.common.parameter import Parameter
from collshim.mindspore.nn.wrap.loss_scale import are_finite
from collshim.mindspore.tensor import Tensor
from collshim.mindspore.train.amp import (
    auto_mixed_precision,
    build_train_network,
    custom_mixed_precision,
    get_black_list,
    get_white_list,
)

__all__ = [
    "DynamicLossScaler",
    "LossScaler",
    "StaticLossScaler",
    "all_finite",
    "auto_mixed_precision",
    "build_train_network",
    "custom_mixed_precision",
    "get_black_list",
    "get_white_list",
]


def all_finite(inputs: Any) -> Tensor:
    """Return whether all elements of all tensors are finite.

    Raises:
        TypeError: ``inputs`` is not a list or tuple.
        ValueError: there are no tensors.
    """
    if not isinstance(inputs, list | tuple):
        refuse(TypeError, f"For 'all_finite', the inputs must be a list or tuple of tensors, but got {type(inputs)}")
    if not inputs:
        refuse(ValueError, "For 'all_finite', there must be at least one tensor, but got 0")
    return are_finite(inputs)


def _mapped(inputs: Any, factor: Any) -> Any:
    if isinstance(inputs, list | tuple):
        return type(inputs)(_mapped(each, factor) for each in inputs)
    return inputs * factor.to(inputs.dtype)


class LossScaler(ABC):
    """The base of loss scalers."""

    @abstractmethod
    def scale(self, inputs: Any) -> Any:
        """Return the inputs times the scale."""

    @abstractmethod
    def unscale(self, inputs: Any) -> Any:
        """Return the inputs over the scale."""

    @abstractmethod
    def adjust(self, grads_finite: Any) -> Any:
        """Update the scale after a step."""


class StaticLossScaler(LossScaler):
    """A scale that does not change.

    Raises:
        TypeError: ``scale_value`` is not a number.
        ValueError: it is less than 1.
    """

    def __init__(self, scale_value: float) -> None:
        self.scale_value: Any = Parameter(_scale(scale_value), name="scale_value", requires_grad=False)

    def scale(self, inputs: Any) -> Any:
        """Return the inputs, a tensor or a list or tuple of tensors, times the scale, in their dtypes."""
        return _mapped(inputs, Tensor(self.scale_value))

    def unscale(self, inputs: Any) -> Any:
        """Return the inputs, a tensor or a list or tuple of tensors, over the scale, in their dtypes."""
        return _mapped(inputs, 1 / Tensor(self.scale_value))

    def adjust(self, grads_finite: Any) -> Any:
        """Return False: the scale does not change."""
        return False


class DynamicLossScaler(StaticLossScaler):
    """A scale that is divided by ``scale_factor`` after gradients that are not finite, but never falls below 1.

    After ``scale_window`` steps with finite gradients, it is multiplied by ``scale_factor``.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: a number is out of range.
    """

    def __init__(self, scale_value: float, scale_factor: int, scale_window: int) -> None:
        super().__init__(scale_value)
        self.scale_factor = check_int(scale_factor, "scale_factor", "DynamicLossScaler", least=1)
        self.scale_window = check_int(scale_window, "scale_window", "DynamicLossScaler", least=1)
        zero = torch.tensor(0, dtype=torch.int32)
        self.counter: Any = Parameter(zero, name="counter", requires_grad=False)

    def adjust(self, grads_finite: Any) -> Any:
        """Update the scale after a step, and return True."""
        with torch.no_grad():
            if not bool(grads_finite):
                self.counter.zero_()
                self.scale_value.copy_(torch.clamp(self.scale_value / self.scale_factor, min=1.0))
                return True
            self.counter.add_(1)
            if int(self.counter) >= self.scale_window:
                self.counter.zero_()
                self.scale_value.mul_(self.scale_factor)
        return True


def _scale(value: Any) -> torch.Tensor:
    check_value_type("scale_value", value, [float, int])
    if value < 1.0:
        refuse(ValueError, f"scale_value is {value}, should be at least 1")
    return torch.tensor(float(value))


__getattr__ = saying(__name__)
