"""``mindspore.nn.Optimizer`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore._checkparam import check_bool, check_float, is_number
from collshim.mindspore.common.parameter import Parameter, ParameterTuple
from collshim.mindspore.context import get_auto_parallel_context
from collshim.mindspore.nn.cell import Cell
from collshim.mindspore.nn.layer.container import CellList
from collshim.mindspore.nn.learning_rate_schedule import LearningRateSchedule
from collshim.mindspore.nn.optim.groups import Group, groups
from collshim.mindspore.tensor import Tensor

__all__ = ["Optimizer"]


class Optimizer(Cell):
    """The base of optimizers: ``optimizer(gradients)`` updates the parameters.

    Args:
        learning_rate: a number, a 0-d tensor, a tensor or an iterable with one rate per step, or a
            LearningRateSchedule.
        parameters: an iterable of parameters, or of groups: dicts with ``params`` and, optionally, their own ``lr``,
            ``weight_decay`` and ``grad_centralization``; one more dict may have ``order_params``.
        weight_decay: a number, or a Cell that computes it from the step. Parameters with "beta" or "gamma" in their
            names do not decay, unless they are in groups.
        loss_scale: the factor by which the loss was multiplied; gradients are divided by it.

    Attributes:
        parameters: the parameters.
        learning_rate: a Parameter named "learning_rate", which may be changed; or the schedule.
        global_step: the number of steps so far, a Parameter of shape (1,).

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: there are no parameters, or a number is out of range.
        RuntimeError: a parameter is in two groups, or ``set_auto_parallel_context`` enabled the parallel optimizer.
    """

    def __init__(self, learning_rate: Any, parameters: Any, weight_decay: Any = 0.0, loss_scale: float = 1.0) -> None:
        super().__init__(auto_prefix=False)
        given = self._listed(parameters)
        scale = float(loss_scale) if is_number(loss_scale, int) else loss_scale
        self.loss_scale = check_float(scale, "loss_scale", self.cls_name, 0.0, ends="(]")
        self.global_step = Parameter(torch.zeros(1, dtype=torch.int32), name="global_step")
        self.is_group = isinstance(given[0], dict)
        rate = self._rate(learning_rate, "learning_rate")
        decay = self._decay(weight_decay)
        self._groups = groups(self, given, rate, decay) if self.is_group else self._each(given, rate, decay)
        self.is_group_lr = self.is_group and any("lr" in group for group in given)
        rates = [group.rate for group in self._groups]
        self.learning_rate = self._of_groups(rates) if self.is_group_lr else rate
        self.parameters = ParameterTuple(group.parameter for group in self._groups)
        self.weight_decay = [group.decay for group in self._groups] if self.is_group else decay
        if get_auto_parallel_context("enable_parallel_optimizer"):
            refuse(RuntimeError, "For 'Optimizer', parallel optimizer only supports \"Ascend\" in data parallel mode")

    def _listed(self, parameters: Any) -> list[Any]:
        if parameters is None:
            refuse(ValueError, "For 'Optimizer', the argument parameters can not be None.")
        if not isinstance(parameters, Iterable):
            text = f"the argument parameters must be Iterable type, but got {type(parameters)}"
            refuse(TypeError, f"For 'Optimizer', {text}")
        found = list(parameters)
        if not found:
            refuse(ValueError, "For 'Optimizer', the argument parameters must not be empty.")
        if not all(isinstance(each, Parameter) for each in found) and not all(isinstance(each, dict) for each in found):
            text = "all elements of the argument 'parameters' must be 'Parameter' or 'dict'"
            refuse(TypeError, f"For 'Optimizer', {text}, but got {[type(each).__name__ for each in found]}")
        return found

    def _each(self, parameters: Sequence[Parameter], rate: Any, decay: Any) -> list[Group]:
        found = []
        for parameter in parameters:
            decays = "beta" not in parameter.name and "gamma" not in parameter.name
            found.append(Group(parameter, rate, decay if decays else 0.0, False))
        return found

    def _rate(self, rate: Any, name: str) -> Any:
        """Return a Parameter, or a Cell that computes the rate from the step."""
        if is_number(rate, int, float):
            return Parameter(torch.tensor(check_float(float(rate), "learning rate", self.cls_name, 0.0)), name=name)
        if isinstance(rate, LearningRateSchedule):
            return rate
        if not isinstance(rate, torch.Tensor | Iterable):
            text = f"must be int, float, Tensor, Iterable or LearningRateSchedule, but got {type(rate)}"
            refuse(TypeError, f"For 'Optimizer', the argument 'learning_rate' {text}")
        values = Tensor(rate if isinstance(rate, torch.Tensor) else np.array(list(rate), np.float32), torch.float32)
        if values.dim() > 1:
            text = f"if 'learning_rate' is Tensor type, its dimension should be 0 or 1, but got {values.dim()}"
            refuse(ValueError, f"For 'Optimizer', {text}")
        return Parameter(values, name=name) if values.dim() == 0 else _RateOfStep(values, name)

    def _decay(self, decay: Any) -> Any:
        if isinstance(decay, Cell):
            return decay
        if not is_number(decay, int, float):
            text = f"the argument 'weight_decay' must be int, float or Cell, but got {type(decay)}"
            refuse(TypeError, f"For 'Optimizer', {text}")
        return check_float(float(decay), "weight_decay", self.cls_name, 0.0)

    def _of_groups(self, rates: list[Any]) -> Any:
        """Return the rates as a ParameterTuple or a CellList, which this Cell can own."""
        if all(isinstance(rate, Parameter) for rate in rates):
            return ParameterTuple(rates)
        return CellList([rate if isinstance(rate, Cell) else _Constant(rate) for rate in rates], auto_prefix=False)

    def _centralizes(self, value: Any) -> bool:
        return check_bool(value, "grad_centralization", self.cls_name)

    def get_lr(self) -> Any:
        """Return the learning rate of this step; if groups have their own, a tuple with each parameter's."""
        rates = tuple(self._now(group.rate) for group in self._groups)
        return rates if self.is_group_lr else rates[0]

    def get_weight_decay(self) -> Any:
        """Return the weight decay of this step times the loss scale; with groups, a tuple with each parameter's."""
        given = self.weight_decay if self.is_group else [self.weight_decay]
        found = tuple(Tensor(self._now(decay) * self.loss_scale, torch.float32) for decay in given)
        return found if self.is_group else found[0]

    @property
    def dynamic_lr(self) -> bool:
        """Whether a learning rate depends on the step."""
        return any(isinstance(group.rate, Cell) for group in self._groups)

    @property
    def dynamic_weight_decay(self) -> bool:
        """Whether a weight decay depends on the step."""
        return any(isinstance(group.decay, Cell) for group in self._groups)

    @property
    def need_scale(self) -> bool:
        """Whether gradients are divided by a loss scale."""
        return self.loss_scale != 1.0

    @property
    def reciprocal_scale(self) -> Tensor:
        """The reciprocal of the loss scale."""
        return Tensor(1.0 / self.loss_scale, torch.float32)

    @property
    def group_lr(self) -> list[Any]:
        """The learning rate of each parameter."""
        return [group.rate for group in self._groups]

    target = "CPU"
    """The place where MindSpore would compute the step; it has no effect, and neither has ``unique``."""

    unique = True

    def get_lr_parameter(self, param: Any) -> Any:
        """Return the learning rate of a parameter, or a list of the rates of a list of parameters.

        Raises:
            TypeError: ``param`` is neither a Parameter nor a list.
            ValueError: a parameter is not one of the optimizer's.
        """
        if isinstance(param, list):
            return [self.get_lr_parameter(each) for each in param]
        if not isinstance(param, Parameter):
            refuse(
                TypeError, f"For 'get_lr_parameter', the 'param' must be 'Parameter' or 'list', but got {type(param)}"
            )
        for group in self._groups:
            if group.parameter is param:
                return group.rate.learning_rate if isinstance(group.rate, _RateOfStep) else group.rate
        refuse(ValueError, f"For 'get_lr_parameter', the parameter {param.name} is not in optimizer")

    def _now(self, rate: Any) -> Any:
        return rate(self.global_step).reshape(()) if isinstance(rate, Cell) else rate

    def construct(self, gradients: Sequence[Any]) -> tuple[bool, ...]:
        """Update the parameters, and return True for each."""
        if len(gradients) != len(self._groups):
            text = f"there must be one gradient for each of {len(self._groups)} parameters, but got {len(gradients)}"
            refuse(ValueError, f"For {self.cls_name!r}, {text}")
        with torch.no_grad():
            rates = [self._now(group.rate).detach().clone() for group in self._groups]
            decays = [
                group.decay(self.global_step) if isinstance(group.decay, Cell) else group.decay
                for group in self._groups
            ]
            self.global_step.add_(1)
            self._begin()
            for index, (group, gradient) in enumerate(zip(self._groups, gradients, strict=True)):
                prepared = self._prepared(group, gradient, decays[index])
                self._update(index, group.parameter, prepared, rates[index], decays[index])
        return (True,) * len(self._groups)

    def _prepared(self, group: Group, gradient: Any, decay: Any) -> Any:
        """Return the gradient with the weight decay, centralized, and divided by the loss scale."""
        if self._decays_gradients and (isinstance(decay, torch.Tensor) or decay > 0):
            gradient = gradient + (decay * self.loss_scale) * group.parameter
        if group.centralizes and gradient.dim() > 1 and gradient.shape[1] % 16 == 0:  # MindSpore's condition
            gradient = gradient - gradient.mean(tuple(range(1, gradient.dim())), keepdim=True)
        return gradient if self.loss_scale == 1.0 else gradient * (1.0 / self.loss_scale)

    _decays_gradients = True

    def _begin(self) -> None:
        """Prepare a step, before the parameters are updated."""

    def _update(self, index: int, parameter: Any, gradient: Any, rate: Any, decay: Any) -> None:
        """Update a parameter; derived classes override this."""
        raise NotImplementedError(f"{type(self).__name__}._update")


class _Constant(LearningRateSchedule):
    """The same rate for every step."""

    def __init__(self, rate: Parameter) -> None:
        super().__init__()
        self.learning_rate = rate

    def construct(self, global_step: Any) -> Any:
        """Return the rate."""
        return self.learning_rate


class _RateOfStep(LearningRateSchedule):
    """One rate for each step."""

    def __init__(self, rates: Tensor, name: str) -> None:
        super().__init__()
        self.learning_rate = Parameter(rates, name=name)

    def construct(self, global_step: Any) -> Any:
        """Return the rate at this step; raise RuntimeError after the last one."""
        step, steps = int(global_step), len(self.learning_rate)
        if step >= steps:
            text = (
                f"the 'learning_rate' has {steps} steps, and a step of it is in the range [0, {steps}), but got {step}"
            )
            refuse(RuntimeError, f"For 'Optimizer', {text}")
        return self.learning_rate[step]
