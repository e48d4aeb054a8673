"""``tf.compat.v1``: the names of ``tf``, and TensorFlow 1's that create variables; no graphs and no sessions.

Source: TensorFlow 2.21, run eagerly on CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.errors import ArgumentValueError
from collshim.tensorflow import variable as variables
from collshim.tensorflow.arithmetic import where as selecting
from collshim.tensorflow.constants import torch_dtype
from collshim.tensorflow.conversion import convert_to_tensor
from collshim.tensorflow.errors import invalid_argument
from collshim.tensorflow.initial_values import zeros_initializer
from collshim.tensorflow.random import uniform
from collshim.tensorflow.variable_modes import VariableAggregation, VariableSynchronization

__all__ = [
    "Variable",
    "enable_eager_execution",
    "enable_resource_variables",
    "enable_v2_behavior",
    "get_variable",
    "global_variables_initializer",
    "local_variables_initializer",
    "where",
]

_absent = saying(__name__, "the graphs and sessions of compat.v1 exist only in TensorFlow")


def Variable(
    initial_value: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    validate_shape: bool = True,
    caching_device: Any = None,
    name: str | None = None,
    variable_def: Any = None,
    dtype: Any = None,
    expected_shape: Any = None,
    import_scope: str | None = None,
    constraint: Callable[[Any], Any] | None = None,
    use_resource: bool | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
    shape: Any = None,
) -> Any:
    """Return a ``tf.Variable``; arguments that ``tf.Variable`` does not have are ignored."""
    return variables.Variable(
        initial_value,
        trainable=trainable,
        name=name,
        dtype=dtype,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
        shape=shape,
    )


def get_variable(
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: Any = None,
    trainable: bool | None = None,
    collections: Any = None,
    caching_device: Any = None,
    partitioner: Any = None,
    validate_shape: bool = True,
    use_resource: bool | None = None,
    custom_getter: Any = None,
    constraint: Callable[[Any], Any] | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """Return a new ``tf.Variable``; ``initializer`` is a function of shape and dtype, or a value; by default random.

    Raises:
        ValueError: both a shape and a value are passed, or neither.
    """
    kind = torch_dtype(torch.float32 if dtype is None else dtype)
    made: Any = initializer() if isinstance(initializer, type) else initializer
    if made is not None and not callable(made) and shape is not None:
        raise ArgumentValueError("If initializer is a constant, do not specify shape.")
    if (made is None or callable(made)) and shape is None:
        raise ArgumentValueError(
            f"Variable {name} did not get an initializer, so its `shape` argument must be specified."
        )
    if made is None:
        made = _spread if kind.is_floating_point else zeros_initializer()
    return variables.Variable(
        (lambda: made(shape, dtype=kind)) if callable(made) else made,
        trainable=trainable,
        name=name,
        dtype=None if initializer is not None and dtype is None else kind,
        constraint=constraint,
        synchronization=synchronization,
        aggregation=aggregation,
    )


def _spread(shape: Any, dtype: Any) -> Any:
    """Return random numbers of Glorot and Bengio's uniform distribution."""
    lengths = [int(length) for length in shape] or [1]
    fans = lengths[-2:] if len(lengths) > 1 else lengths * 2
    limit = (6.0 / max(1, sum(fans))) ** 0.5
    return uniform(shape, -limit, limit, dtype)


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> Any:
    """Return ``tf.where``, without broadcasting: a vector of conditions chooses rows.

    Raises:
        InvalidArgumentError: the shapes of ``x`` and ``y`` differ, or the conditions are neither a scalar, nor one for
            each row, nor one for each element.
    """
    chosen = convert_to_tensor(condition)
    if x is None and y is None:
        return selecting(chosen)
    first = convert_to_tensor(x)
    second = convert_to_tensor(y, None if hasattr(y, "dtype") else first.dtype)
    shapes = [list(one.shape) for one in (chosen, first, second)]
    if shapes[1] != shapes[2] or shapes[0] not in ([], shapes[1], shapes[1][:1]):
        raise invalid_argument(
            f"Inputs to operation Select must have the same shape, or a condition for each row; got shapes {shapes}"
        )
    return selecting(chosen.reshape([*shapes[0], *[1] * (len(shapes[1]) - len(shapes[0]))]), first, second)


def global_variables_initializer() -> None:
    """Do nothing: variables have their values from the start."""


def local_variables_initializer() -> None:
    """Do nothing: variables have their values from the start."""


def enable_v2_behavior() -> None:
    """Do nothing: version 2 is the only behavior here."""


def enable_eager_execution(config: Any = None, device_policy: Any = None, execution_mode: Any = None) -> None:
    """Do nothing: there are no graphs."""


def enable_resource_variables() -> None:
    """Do nothing: all variables here are resource variables."""


def __getattr__(name: str) -> Any:
    module = import_module("collshim.tensorflow")
    is_there = name == "keras" or (name in vars(module) and not name.startswith("_"))
    return getattr(module, name) if is_there else _absent(name)
