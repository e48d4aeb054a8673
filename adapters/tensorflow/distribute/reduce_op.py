"""``tf.distribute.ReduceOp``: how replicas' values are combined into one."""

from __future__ import annotations

from enum import Enum

from collshim.errors import ArgumentTypeError, ArgumentValueError, also


class ReduceOp(Enum):
    """SUM adds the replicas' values; MEAN divides the sum by the number of replicas (float64 for integers)."""

    SUM = "SUM"
    MEAN = "MEAN"

    @staticmethod
    def from_variable_aggregation(aggregation: Enum) -> ReduceOp:
        """Return the operation of a ``tf.VariableAggregation``.

        Raises:
            ValueError: the aggregation is NONE or ONLY_FIRST_REPLICA.
        """
        if aggregation.name in ReduceOp.__members__:
            return ReduceOp[aggregation.name]
        raise ArgumentValueError(
            f"Could not convert from `tf.VariableAggregation` VariableAggregationV2.{aggregation.name} to"
            "`tf.distribute.ReduceOp` type"
        )


def reduce_op_of(reduce_op: ReduceOp | str) -> ReduceOp:
    """Return ``reduce_op``, or the operation of that name in upper or lower case.

    Raises:
        ValueError: there is no operation of that name.
        AssertionError: ``reduce_op`` is neither a ``ReduceOp`` nor a string.
    """
    if isinstance(reduce_op, ReduceOp):
        return reduce_op
    if not isinstance(reduce_op, str):
        raise also(ArgumentTypeError, AssertionError)(
            f"reduce_op is {reduce_op!r}, should be a string or else: Expected `reduce_op` to be a "
            f"`tf.distribute.ReduceOp`, not: {reduce_op!r}"
        )
    if reduce_op.upper() not in ReduceOp.__members__:
        raise ArgumentValueError(f"{reduce_op.upper()!r} is not a valid ReduceOp")
    return ReduceOp[reduce_op.upper()]
