"""A process that was forked off a rank is no rank: what it inherits are its parent's sockets."""

from __future__ import annotations

import os
from typing import Any, NoReturn
from weakref import WeakSet

from collshim.errors import WorldError

_LIVING: WeakSet[Any] = WeakSet()
INHERITED: list[Any] = []
"""Kept: gloo's destructors would wait for threads that are in the parent alone."""


def remember(communicator: Any) -> None:
    """A communicator that a forked process must not use."""
    _LIVING.add(communicator)


def no_rank(of: str) -> WorldError:
    """The error in a forked process."""
    return WorldError(
        f"process {os.getpid()} was forked off {of} and is no rank itself: call collectives in the rank, or make a "
        "world of its own with collshim.init or collshim.launch"
    )


class _NoTransport:
    """Stands for a transport in a forked process; whatever it is asked, it raises."""

    def __init__(self, of: str) -> None:
        self._of = of

    def close(self) -> None:
        """There is no group to leave."""

    def __getattr__(self, name: str) -> NoReturn:
        raise no_rank(self._of)


def disown(of: str) -> None:
    """In a process forked off ``of``: communicators of more than one rank end here, and go on in the parent."""
    for communicator in list(_LIVING):
        if communicator.size > 1:
            INHERITED.append(communicator._transport)
            communicator._transport = _NoTransport(of)
            communicator._forget_plans()  # which start calls without asking the transport
