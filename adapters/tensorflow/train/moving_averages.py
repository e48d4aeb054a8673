"""``tf.train.ExponentialMovingAverage``: averages of variables over training. Source: TensorFlow 2.21, run eagerly."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import torch

from collshim.errors import ArgumentTypeError
from collshim.tensorflow.distribute import context
from collshim.tensorflow.tensor import Reference
from collshim.tensorflow.variable import Variable

_KINDS = (torch.bfloat16, torch.float16, torch.float32, torch.float64)


class ExponentialMovingAverage:
    """Moving averages of variables; ``apply`` updates them with the variables' values.

    In a replica, the mean of all replicas' values is used, and all replicas must call ``apply``.

    Args:
        decay: the weight of the old average; a number or a tensor.
        num_updates: the number of steps so far, which limits the decay to ``(1 + num_updates) / (10 + num_updates)``;
            None for no limit.
        zero_debias: without effect; it is for averages of tensors, which TensorFlow supports only in graphs.
        name: the last part of the averages' names.
    """

    def __init__(
        self, decay: Any, num_updates: Any = None, zero_debias: bool = False, name: str = "ExponentialMovingAverage"
    ) -> None:
        self._decay, self._num_updates, self._name = decay, num_updates, name
        self._averages: dict[Reference, Any] = {}

    @property
    def name(self) -> str:
        """The last part of the averages' names."""
        return self._name

    def apply(self, var_list: Sequence[Any] | None = None) -> None:
        """Update the average of each variable; the first call creates the averages, equal to the values.

        Without a list, nothing happens: there is no graph to find all variables in.

        Raises:
            TypeError: an element is not a variable, or does not have a floating-point dtype.
        """
        variables = () if var_list is None else var_list
        for variable in variables:
            _require_floating(variable)
            if variable.ref() not in self._averages:
                self._averages[variable.ref()] = self._shadow(variable)
        decay = float(self._decay)
        if self._num_updates is not None:
            steps = float(self._num_updates)
            decay = min(decay, (1.0 + steps) / (10.0 + steps))
        for variable in variables:
            _move(self._averages[variable.ref()], variable, 1.0 - decay)

    def average(self, var: Any) -> Any:
        """Return the variable that holds the average of ``var``; None if there is none."""
        return self._averages.get(var.ref())

    def average_name(self, var: Any) -> str:
        """Return the name of the average of ``var``, without ``:0``."""
        average = self.average(var)
        return f"{var.name.removesuffix(':0')}/{self._name}" if average is None else average.name.removesuffix(":0")

    def variables_to_restore(self, moving_avg_variables: Sequence[Any] | None = None) -> dict[str, Any]:
        """Return variables by the names of their averages: these, or else all that have an average."""
        chosen = moving_avg_variables
        if chosen is None:
            chosen = [reference.deref() for reference in self._averages]
        return {self.average_name(variable): variable for variable in chosen}

    def _shadow(self, variable: Any) -> Any:
        return Variable(
            variable.read_value(),
            trainable=False,
            name=f"{variable.name.removesuffix(':0')}/{self._name}",
            dtype=variable.dtype,
        )


def _require_floating(variable: Any) -> None:
    if not isinstance(variable, Variable):
        raise ArgumentTypeError(
            "tf.train.ExponentialMovingAverage does not support non-Variable tensors when eager execution is enabled."
        )
    if variable.dtype not in _KINDS:
        raise ArgumentTypeError(f"The variables must be half, float, or double: {variable.name}")


def _move(average: Any, value: Any, step: float) -> None:
    replica = context.get_replica_context()
    if replica is None:
        _update(context.get_strategy(), average, value, step)
    else:
        replica.merge_call(partial(_merge, step=step), (average, value))


def _merge(strategy: Any, average: Any, value: Any, step: float) -> None:
    _update(strategy, average, strategy.extended.reduce_to("MEAN", value, average), step)


def _update(strategy: Any, average: Any, value: Any, step: float) -> None:
    strategy.extended.update(average, lambda own, new: own.assign_sub((own - new) * step), (value,))
