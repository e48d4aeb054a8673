"""A process forked off a rank is not a rank itself: the sockets that it inherits are its parent's."""

from __future__ import annotations

import os
from typing import Any, NoReturn
from weakref import WeakSet

from collshim.errors import WorldError

_LIVING: WeakSet[Any] = WeakSet()
INHERITED: list[Any] = []
"""Objects kept alive: gloo's destructors would wait for threads that only exist in the parent."""


def remember(communicator: Any) -> None:
    """Register a communicator that a forked process must not use."""
    _LIVING.add(communicator)


def no_rank(of: str) -> WorldError:
    """Return the error of a call in a forked process."""
    return WorldError(
        f"process {os.getpid()} was forked by {of} and is not a rank itself: call collectives in the rank, or make "
        "another world with collshim.init or collshim.launch"
    )


class _NoTransport:
    """Replaces a transport in a forked process; any use of it raises an error."""

    def __init__(self, of: str) -> None:
        self._of = of

    def close(self) -> None:
        """Do nothing: there is no group to leave."""

    def __getattr__(self, name: str) -> NoReturn:
        raise no_rank(self._of)


def disown(of: str) -> None:
    """Disable communicators of several ranks in a process forked off ``of``; in the parent they go on."""
    for communicator in list(_LIVING):
        if communicator.size > 1:
            INHERITED.append(communicator.replace_transport(_NoTransport(of)))
