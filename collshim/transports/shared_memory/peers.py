"""Watch the processes of the other ranks: whether they have ended."""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Sequence


class Peers:
    """The processes of a group's ranks.

    No file descriptor is kept between two questions, and a call that is not held up never asks.
    """

    def __init__(self, processes: Sequence[int], rank: int) -> None:
        """Pass the ids by rank; the process of ``rank`` is this one, which is not watched."""
        self.processes = tuple(processes)
        self._rank = rank
        self._ended = set[int]()

    def has_ended(self, rank: int) -> bool:
        """Return whether the process of a rank has ended; the own has not."""
        if rank != self._rank and rank not in self._ended and _has_ended(self.processes[rank]):
            self._ended.add(rank)
        return rank in self._ended


def _has_ended(process: int) -> bool:
    try:
        file = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.EPERM, errno.EMFILE, errno.ENFILE):
            return False  # then only the deadline ends a wait for it
        raise
    try:
        poll = select.poll()
        poll.register(file, select.POLLIN)
        return bool(poll.poll(0))
    finally:
        os.close(file)
