"""The base of the optimizers of ``mindspore.mint.optim`` (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.mindspore.common.parameter import Parameter, ParameterTuple
from collshim.mindspore.nn.cell import Cell

__all__ = ["Optimizer", "require_at_least"]


def require_at_least(value: Any, text: str) -> None:
    """Refuse a negative number.

    Raises:
        ValueError: the value is below 0.
    """
    if value < 0.0:
        refuse(ValueError, f"Invalid {text}: {value}")


class Optimizer(Cell):
    """A Cell that updates parameters with their gradients, group by group.

    Args:
        params: Parameters; or dicts with ``params`` and settings of their own.
        defaults: the settings of groups that do not have their own.

    Attributes:
        param_groups: a dict of settings for each group. ``lr`` is a Parameter, so ``ops.assign`` changes it.
        parameters: the parameters of all groups.

    Raises:
        KeyError: a group has no ``params``.
        TypeError: ``params`` are not Parameters.
        ValueError: there are no parameters, or a name occurs twice.
    """

    _STATES: tuple[str, ...] = ()
    """The names of the optimizer's states, each of which has a tensor of each parameter's shape."""

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        super().__init__(auto_prefix=False)
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self.parameters = ParameterTuple(())
        for group in _groups(params):
            self._take(group)
        self._extend_states(self.parameters)

    @property
    def lrs(self) -> list[Any]:
        """The learning rate of each group."""
        return [group["lr"] for group in self.param_groups]

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters."""
        before = len(self.parameters)
        self._take(param_group)
        self._extend_states(self.parameters[before:])

    def _take(self, given_group: dict[str, Any]) -> None:
        group = {**self.defaults, **given_group}
        given = group["params"]
        group["params"] = found = [given] if isinstance(given, Parameter) else list(given)
        for each in found:
            if not isinstance(each, Parameter):
                refuse(TypeError, f"For 'Optimizer', a group's 'params' must be Parameters, but got {type(each)}")
        rate = torch.tensor(float(group["lr"]))
        group["lr"] = Parameter(rate, name=f"learning_rate_group_{len(self.param_groups)}")
        self.param_groups.append(group)
        self.parameters = ParameterTuple((*self.parameters, *found))

    def _extend_states(self, parameters: Sequence[Parameter]) -> None:
        for name in self._STATES:
            made = ParameterTuple(parameters).clone(name, "zeros")
            setattr(self, name, ParameterTuple((*vars(self).get(name, ()), *made)))

    def construct(self, gradients: Sequence[Any]) -> bool:
        """Update the parameters, and return True."""
        found: list[Any] = list(gradients) if isinstance(gradients, list | tuple) else [gradients]
        if len(found) != len(self.parameters):
            text = f"one gradient for each of {len(self.parameters)} parameters, but got {len(found)}"
            refuse(ValueError, f"For {self.cls_name!r}, there must be {text}")
        with torch.no_grad():
            self._begin()
            index = 0
            for group in self.param_groups:
                for parameter in group["params"]:
                    gradient = found[index]
                    self._update(index, group, parameter, -gradient if group["maximize"] else gradient)
                    index += 1
        return True

    def _begin(self) -> None:
        """Prepare a step, before the parameters are updated."""

    def _update(self, index: int, group: dict[str, Any], parameter: Any, gradient: Any) -> None:
        """Update a parameter; derived classes override this."""
        raise NotImplementedError(f"{type(self).__name__}._update")

    def __repr__(self) -> str:
        lines = [f"{self.cls_name} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            shown = {**group, "lr": f"{float(group['lr']):.6g}"}
            lines += [f"    {key}: {shown[key]}" for key in sorted(shown) if key != "params"]
        return "\n".join([*lines, ")"])


def _groups(params: Any) -> list[dict[str, Any]]:
    if params is None:
        refuse(ValueError, "For 'Optimizer', the argument params can not be None.")
    if not isinstance(params, Iterable) or isinstance(params, torch.Tensor):
        refuse(TypeError, f"For 'Optimizer', the argument params must be Iterable type, but got {type(params)}.")
    found = list(params)
    if not found:
        refuse(ValueError, "For 'Optimizer', the argument params must not be empty.")
    if not all(isinstance(each, dict) for each in found) and not all(isinstance(each, Parameter) for each in found):
        text = f"must be 'Parameter' or 'dict', but got {[type(each).__name__ for each in found]}"
        refuse(TypeError, f"For 'Optimizer', all elements of the argument 'params' {text}")
    return found if isinstance(found[0], dict) else [{"params": found}]
