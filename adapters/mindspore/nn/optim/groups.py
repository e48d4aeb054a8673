"""Groups of an optimizer's parameters, with their own rates and decays (source: MindSpore 2.10.0)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from collshim.adapting.refusing import refuse
from collshim.log import warn_once
from collshim.mindspore.common.parameter import Parameter

__all__ = ["Group", "groups"]
_KEYS = ("params", "lr", "weight_decay", "grad_centralization")


class Group(NamedTuple):
    """One parameter with its settings.

    Attributes:
        parameter: the parameter.
        rate: its learning rate, a Parameter or a Cell.
        decay: its weight decay, a number or a Cell.
        centralizes: whether the mean is subtracted from its gradient.
    """

    parameter: Parameter
    rate: Any
    decay: Any
    centralizes: bool


def groups(optimizer: Any, given: Sequence[dict[str, Any]], rate: Any, decay: Any) -> list[Group]:
    """Return the parameters of all groups, in the order of ``order_params`` if there is one."""
    found: list[Group] = []
    order: Any = None
    for number, group in enumerate(given):
        if "order_params" in group:
            order = _order(group)
            continue
        own_rate = optimizer._rate(group["lr"], f"learning_rate_group_{number}") if "lr" in group else rate
        own_decay = optimizer._decay(group["weight_decay"]) if "weight_decay" in group else decay
        centralizes = optimizer._centralizes(group.get("grad_centralization", False))
        for key in group:
            if key not in _KEYS:
                warn_once("an optimizer's group has the key %r, which is none of %s: it has no effect", key, _KEYS)
        for parameter in group["params"]:
            if not isinstance(parameter, Parameter):
                refuse(TypeError, f"For 'Optimizer', a group's 'params' must be Parameters, but got {type(parameter)}")
            if any(parameter.name == other.parameter.name for other in found):
                text = f"the {parameter.name} parameter already exists, it does not support repeated setting"
                refuse(RuntimeError, f"For 'Optimizer', {text}")
            found.append(Group(parameter, own_rate, own_decay, centralizes))
    return found if order is None else _ordered(found, list(order))


def _order(group: dict[str, Any]) -> Any:
    if len(group) > 1:
        text = f"the dict with 'order_params' should only include this key, but got {list(group)}"
        refuse(ValueError, f"For 'Optimizer', {text}")
    return group["order_params"]


def _ordered(found: list[Group], order: list[Any]) -> list[Group]:
    by_name = {group.parameter.name: group for group in found}
    if len(order) != len(found) or any(parameter.name not in by_name for parameter in order):
        text = f"'order_params' must have the {len(found)} parameters of all groups, but got {len(order)}"
        refuse(ValueError, f"For 'Optimizer', {text}")
    return [by_name[parameter.name] for parameter in order]
