"""Keras's variables under strategies: a copy for each replica, with Keras's aggregation and synchronization.

A copy is written in place and stays the same parameter, because torch's modules hold it and Keras's optimizers write to
it. When a variable is read, a tape records a copy of the value, so that later writes do not change it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from collshim.tensorflow import gradient_tape
from collshim.tensorflow.distribute import context
from collshim.tensorflow.distribute.values import DistributedValues
from collshim.tensorflow.distributed_variables import SyncOnReadVariable, create_distributed
from collshim.tensorflow.gradient_tape import component_here
from collshim.tensorflow.tensor import Tensor, adopt
from collshim.tensorflow.variable import Variable
from collshim.tensorflow.variable_modes import VariableAggregation, VariableSynchronization


class Copy(Variable):
    """One replica's copy of a Keras variable; ``arguments`` are those of ``tf.Variable``.

    Attributes:
        parameter: the torch parameter that holds the value.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.parameter = torch.nn.Parameter(adopt(self._value.detach()), requires_grad=self.trainable)
        self._value = self.parameter

    def value(self) -> Tensor:
        """Return the value without a gradient: tapes record reads of the Keras variable instead."""
        return adopt(self.parameter.detach())

    def _rewrite(self, change: Callable[[torch.Tensor], torch.Tensor]) -> Variable:
        with torch.no_grad():
            self.parameter.copy_(change(self.parameter.detach()))
        return self


def install() -> None:
    """Let Keras's variables have copies, and let tapes record them; call this once."""
    keras_variable: Any = import_module("keras.src.backend.torch.core").Variable
    in_stateless_scope = import_module("keras.src.backend").in_stateless_scope
    keras_value, keras_trainable = keras_variable.value.fget, keras_variable.trainable

    def value(self: Any) -> Any:
        if self._value is None or in_stateless_scope():
            return keras_value(self)
        return self._maybe_autocast(_recorded(self, _read(self._held)))

    def set_trainable(self: Any, trainable: bool) -> None:
        keras_trainable.fset(self, trainable)
        for copy in _copies(self):
            copy.trainable = bool(trainable)
            copy.parameter.requires_grad = bool(trainable)

    keras_variable._held = None
    keras_variable._initialize = _initialize
    keras_variable._direct_assign = _direct_assign
    keras_variable._as_tensor = _as_tensor
    keras_variable.numpy = _numpy
    keras_variable.__array__ = _array
    keras_variable.value = property(value, doc=keras_variable.value.__doc__)
    keras_variable.trainable = property(keras_trainable.fget, set_trainable, doc=keras_trainable.__doc__)


def _initialize(self: Any, value: Any) -> None:
    """Create the copies of a Keras variable for the caller's strategy."""
    arguments: dict[str, Any] = {
        "initial_value": self._convert_to_tensor(value, dtype=self._dtype),
        "trainable": self._trainable,
        "name": self.path,
        "synchronization": VariableSynchronization[self.synchronization.upper()],
        "aggregation": VariableAggregation[self.aggregation.upper()],
    }

    def create(**more: Any) -> Variable:
        return Copy(**{**arguments, **more})

    strategy = context.get_strategy()
    # A replica builds a layer or an optimizer for all replicas of this process: the others find it already built.
    self._held = create_distributed(strategy, create) if strategy.extended._makes_variables else create()
    self._value = _copies(self)[0].parameter


def _direct_assign(self: Any, value: Any) -> None:
    """Assign a value, combined by ``aggregation`` and ``synchronization``."""
    self._held.assign(value.detach(), read_value=False)


def _as_tensor(self: Any) -> Tensor:
    """Return a copy of the value for TensorFlow's functions; later writes do not change it."""
    return adopt(self.value.clone())


def _numpy(self: Any) -> Any:
    """Return the value as a NumPy array, or a NumPy scalar for shape ()."""
    return adopt(self.value).numpy()


def _array(self: Any, dtype: Any = None, copy: bool | None = None) -> Any:
    """Return a copy of the value for NumPy; Keras's own method lacks NumPy's argument ``copy``."""
    return adopt(self.value).__array__(dtype)


def _copies(self: Any) -> tuple[Any, ...]:
    if self._held is None:
        return ()
    return self._held.values if isinstance(self._held, DistributedValues) else (self._held,)


def _read(held: Any) -> Any:
    """Return the value for the caller: its replica's own memory, or all copies combined by ``aggregation``."""
    return held.value() if isinstance(held, SyncOnReadVariable) else component_here(held).parameter


def _recorded(variable: Any, value: torch.Tensor) -> torch.Tensor:
    """Return the value that open tapes record; if no tape records, return the memory itself, which may be written."""
    if not torch.is_grad_enabled() or not gradient_tape.is_open():
        return value
    watched = value if value.requires_grad or not value.is_floating_point() else value.detach().requires_grad_()
    return gradient_tape.read(variable, watched).clone()
