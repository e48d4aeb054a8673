"""Values on which the replicas of a ``MirroredStrategy.run`` must agree before a collective exchanges its first leaf.

Each replica's calls are counted. A replica's n-th call is compared, without a wait, with the first n-th call that any
replica made. Source: TensorFlow 2.21, whose replicas exchange all leaves in one merge call.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from collshim.errors import ArgumentError, CollshimError, also
from collshim.tensorflow.errors import mismatch


class _Call(NamedTuple):
    """The arguments of the first replica's call, and the replicas that have made the call."""

    replica: int
    leaves: int
    axis: int | None
    replicas: set[int]


class Agreement:
    """The calls that not all replicas have made yet."""

    def __init__(self, replicas: int) -> None:
        self._lock = threading.Lock()
        self._calls = [0] * replicas
        self._open: dict[int, _Call] = {}

    def agree(self, collective: str, replica: int, leaves: int, axis: int | None = None) -> None:
        """Count a call of ``replica`` with this number of leaves.

        Raises:
            AssertionError: in the same call of a different replica, the number of leaves is different.
            InvalidArgumentError: in the same call of a different replica, the axis is different.
        """
        with self._lock:
            number = self._calls[replica]
            self._calls[replica] += 1
            call = self._open.setdefault(number, _Call(replica, leaves, axis, set()))
            call.replicas.add(replica)
            if len(call.replicas) == len(self._calls):
                del self._open[number]
        if call.leaves != leaves:
            raise _unequal_leaves(collective, {replica: leaves, call.replica: call.leaves})
        if None not in (axis, call.axis) and call.axis != axis:
            raise mismatch(
                f"{collective}: the replicas disagree on axis: replica {call.replica} has {call.axis}, replica "
                f"{replica} has {axis}"
            )


def _unequal_leaves(collective: str, leaves: dict[int, int]) -> CollshimError:
    (first, expected), (other, count) = sorted(leaves.items())
    return also(ArgumentError, AssertionError)(
        f"{collective}: Values to regroup had different lengths: len(v) == {count}, len(v0) == {expected}: replica "
        f"{other} gives {count} leaves, replica {first} {expected}"
    )
