"""Watch the processes of the other ranks: which of them have ended."""

from __future__ import annotations

import errno
import os
import select
import threading
from collections.abc import Sequence


class Peers:
    """The processes of a group's ranks.

    No file descriptor is kept between two calls of ``ended``, and a call that is not held up never calls it.
    """

    def __init__(self, processes: Sequence[int], rank: int) -> None:
        """Pass the ids by rank; the process of ``rank`` is this one, which is not watched."""
        self.processes = tuple(processes)
        self._rank = rank
        self._lock = threading.Lock()
        self._ended = set[int]()

    def ended(self) -> set[int]:
        """Return the ranks whose processes have ended."""
        with self._lock:
            for rank, process in enumerate(self.processes):
                if rank != self._rank and rank not in self._ended and _has_ended(process):
                    self._ended.add(rank)
            return set(self._ended)


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
