"""``tf.VariableSynchronization`` and ``tf.VariableAggregation``: when and how a variable's copies are synchronized.

Source: TensorFlow 2.21.
"""

from __future__ import annotations

from enum import Enum

from collshim.errors import ArgumentValueError
from collshim.tensorflow.distribute.reduce_op import ReduceOp


class VariableSynchronization(Enum):
    """When the copies of a variable are synchronized: at every write, or when it is read across replicas."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(Enum):
    """How the values that several replicas write are combined."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


VariableAggregation.__name__ = "VariableAggregationV2"  # the name in TensorFlow's texts


def reduce_op_for(aggregation: VariableAggregation) -> ReduceOp:
    """Return the reduction of an aggregation.

    Raises:
        ValueError: the aggregation is NONE or ONLY_FIRST_REPLICA.
    """
    return ReduceOp.from_variable_aggregation(aggregation)


def require_modes(synchronization: object, aggregation: object, name: str | None, is_copied: bool) -> None:
    """Refuse values that are not modes.

    Raises:
        ValueError: a value is not a mode; the text shows it.
    """
    if not isinstance(synchronization, VariableSynchronization):
        raise ArgumentValueError(f"Invalid variable synchronization mode: {synchronization} for variable: {name}")
    if not isinstance(aggregation, VariableAggregation):
        raise ArgumentValueError(f"Invalid variable aggregation mode: {aggregation} for variable: {name}")
    if is_copied and synchronization is VariableSynchronization.NONE:
        raise ArgumentValueError(
            "`NONE` variable synchronization mode is not supported with tf.distribute strategy. Please change the "
            f"`synchronization` for variable: {name}"
        )
