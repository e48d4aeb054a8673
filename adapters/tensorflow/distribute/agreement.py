"""What the replicas of one ``MirroredStrategy.run`` must agree on before a collective's first leaf is exchanged.

Each replica's calls are counted; whoever comes later to the n-th call compares with who came first, and nobody
waits. Source: TensorFlow 2.21, whose replicas meet with all leaves in one merge call.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from collshim.errors import ArgumentError, CollshimError, also
from collshim.tensorflow.errors import mismatch


class _Meeting(NamedTuple):
    """What the first replica to come to a call gave, and who has come."""

    replica: int
    leaves: int
    axis: int | None
    came: set[int]


class Agreement:
    """The calls that not all replicas have come to yet."""

    def __init__(self, replicas: int) -> None:
        self._lock = threading.Lock()
        self._calls = [0] * replicas
        self._meetings: dict[int, _Meeting] = {}

    def meet(self, collective: str, replica: int, leaves: int, axis: int | None = None) -> None:
        """Count a call of ``replica`` with so many leaves.

        Raises:
            AssertionError: another replica's same call has another number of leaves.
            InvalidArgumentError: it has another axis.
        """
        with self._lock:
            number = self._calls[replica]
            self._calls[replica] += 1
            meeting = self._meetings.setdefault(number, _Meeting(replica, leaves, axis, set()))
            meeting.came.add(replica)
            if len(meeting.came) == len(self._calls):
                del self._meetings[number]
        if meeting.leaves != leaves:
            raise _unequal_leaves(collective, {replica: leaves, meeting.replica: meeting.leaves})
        if None not in (axis, meeting.axis) and meeting.axis != axis:
            raise mismatch(
                f"{collective}: the replicas disagree on axis: replica {meeting.replica} has {meeting.axis}, replica "
                f"{replica} has {axis}"
            )


def _unequal_leaves(collective: str, leaves: dict[int, int]) -> CollshimError:
    (first, wanted), (other, found) = sorted(leaves.items())
    return also(ArgumentError, AssertionError)(
        f"{collective}: Values to regroup had different lengths: len(v) == {found}, len(v0) == {wanted}: replica "
        f"{other} gives {found} leaves, replica {first} {wanted}"
    )
