"""``Optimizer``, the base class of all optimizers (source: MegEngine 1.13.0, ``megengine.optimizer.optimizer``)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

import numpy as np

from collshim.errors import ArgumentTypeError, ArgumentValueError, CollshimError, also
from collshim.megengine.core.tensor.values import require
from collshim.megengine.tensor import Parameter, Tensor

__all__ = ["Optimizer", "required"]


class _Required:
    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()
"""The default of a setting that every group of parameters must have."""


class Optimizer:
    """Updates parameters by their gradients, in place; calls of ``step`` and ``clear_grad`` can be chained.

    Args:
        params: parameters, or dictionaries with ``params`` and settings for them.
        defaults: the default settings, by name.

    Raises:
        TypeError: an object is not a parameter, or parameters are mixed with dictionaries.
        ValueError: there are no parameters, or a group lacks a required setting.
        AssertionError: a parameter is in two groups.
    """

    def __init__(self, params: Any, defaults: dict[str, Any]) -> None:
        self._state: dict[Parameter, dict[str, Tensor]] = {}
        self._defaults = defaults
        if not isinstance(params, Parameter | dict | Iterable):
            raise ArgumentTypeError(
                "params argument given to the optimizer should be Parameter or dict, or Iterable of them"
            )
        groups: list[Any] = [params] if isinstance(params, Parameter | dict) else list(params)
        if not groups:
            raise ArgumentValueError("optimizer got an empty parameter list")
        if not all(isinstance(group, type(groups[0])) for group in groups):
            raise ArgumentTypeError("types of params argument given to the optimizer shoud be same")
        self.param_groups: list[dict[str, Any]] = []
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)
        for group in self.param_groups:
            self._create_state(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters with its own settings."""
        require(isinstance(param_group, dict), "param group must be a dict")
        found = param_group["params"]
        parameters = param_group["params"] = [found] if isinstance(found, Parameter) else list(found)
        for parameter in parameters:
            if not isinstance(parameter, Parameter):
                raise ArgumentTypeError(
                    f"optimizer can only optimize Parameters, but one of the params is {type(parameter)}"
                )
        for name, default in self._defaults.items():
            if default is required and name not in param_group:
                raise ArgumentValueError(
                    f"parameter group didn't specify a value of required optimization parameter {name}"
                )
            param_group.setdefault(name, default)
        known = {id(parameter) for group in self.param_groups for parameter in group["params"]}
        apart = known.isdisjoint(id(parameter) for parameter in parameters)
        require(apart, "some parameters appear in more than one parameter group")
        self.param_groups.append(param_group)

    def _add_state(self, param: Parameter, state_name: str, initializer: Any = None) -> None:
        """Create a state tensor for a parameter, of zeros by default."""
        initial = np.zeros(param.shape, np.float32) if initializer is None else initializer
        self._state.setdefault(param, {})[state_name] = Tensor(initial)

    def _create_state(self, param_group: dict[str, Any]) -> None:
        """Create the state for the parameters of a group; subclasses implement this."""
        raise NotImplementedError

    def _updates(self, param_group: dict[str, Any]) -> None:
        """Update the parameters of a group; subclasses implement this."""
        raise NotImplementedError

    def _decayed_gradients(self, group: dict[str, Any]) -> Iterator[tuple[Parameter, Tensor, dict[str, Tensor]]]:
        """Yield each parameter of a group that has a gradient, its gradient plus the weight decay, and its states."""
        for parameter in group["params"]:
            if parameter.grad is not None:
                yield parameter, self._decayed(parameter, group["weight_decay"]), self._state.get(parameter, {})

    def _decayed(self, parameter: Any, decay: float) -> Any:
        return parameter.grad + parameter * decay if decay else parameter.grad

    def _get_params(self) -> list[Parameter]:
        return [parameter for group in self.param_groups for parameter in group["params"]]

    def step(self) -> Optimizer:
        """Update every parameter that has a gradient; return the optimizer."""
        for group in self.param_groups:
            if isinstance(group["params"], set):
                raise ArgumentTypeError("optimized parameters need to be organized in ordered collections: use a list")
            self._updates(group)
        return self

    def clear_grad(self) -> None:
        """Remove the gradients."""
        for parameter in self._get_params():
            parameter.grad = None

    def zero_grad(self) -> None:
        """Set the existing gradients to zero. Before MegEngine 1.0, this did what ``clear_grad`` does now."""
        for parameter in self._get_params():
            if parameter.grad is not None:
                parameter.grad.reset_zero()

    def state_dict(self, keep_var: bool = False) -> dict[str, Any]:
        """Return the settings, and each parameter's state by its number, as arrays, or as tensors with ``keep_var``."""
        numbers: dict[Parameter, int] = {}
        for parameter in self._get_params():
            numbers.setdefault(parameter, len(numbers))
        state = {
            numbers[parameter]: {name: kept if keep_var else kept.numpy() for name, kept in states.items()}
            for parameter, states in self._state.items()
        }
        groups = [
            {**group, "params": [numbers[parameter] for parameter in group["params"]]} for group in self.param_groups
        ]
        return {"param_groups": groups, "state": state}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state that ``state_dict`` returned; ValueError if groups or their settings differ."""
        loaded = "loaded state dict"
        if len(self.param_groups) != len(state["param_groups"]):
            raise ArgumentValueError(f"{loaded} has a different number of parameter groups")
        for group, saved in zip(self.param_groups, state["param_groups"], strict=True):
            if len(group["params"]) != len(saved["params"]):
                raise ArgumentValueError(f"{loaded} contains a parameter group that doesn't match the size of ours")
            if set(group) != set(saved):
                raise ArgumentValueError(f"{loaded} contains a parameter group that doesn't match the keys of ours")
            for parameter, number in zip(group["params"], saved["params"], strict=True):
                kept = state["state"].get(number, {})
                if kept or parameter in self._state:
                    self._state[parameter] = {name: Tensor(copy.copy(value)) for name, value in kept.items()}
            group.update({name: value for name, value in saved.items() if name != "params"})
        if len(self._state) != len(state["state"]):
            raise ArgumentValueError(f"{loaded} contains a state that doesn't match the size of optimizer's state")

    def backward(self, loss: Any) -> NoReturn:
        """Raise an error that refers to ``GradManager``."""
        raise also(CollshimError, NotImplementedError)("use autodiff.GradManager instead")

    def bcast_param(self) -> NoReturn:
        """Raise an error that refers to ``bcast_list_``."""
        raise also(CollshimError, NotImplementedError)("use distributed.bcast_list_ instead")
