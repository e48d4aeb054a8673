"""The processes of the other ranks, and which of them have ended."""

from __future__ import annotations

import errno
import os
import select
import threading
from collections.abc import Sequence


class Peers:
    """The processes of a group's ranks.

    A process is watched from the first question on: a call that is not held up asks none.
    """

    def __init__(self, processes: Sequence[int], rank: int) -> None:
        """Pass the ids by rank; the process of ``rank`` is this one, which is not watched."""
        self.processes = tuple(processes)
        self._rank = rank
        self._lock = threading.Lock()
        self._files: dict[int, int] | None = None
        self._poll = select.poll()
        self._ended = set[int]()

    def ended(self) -> set[int]:
        """Return the ranks whose processes have ended."""
        with self._lock:
            files = self._open() if self._files is None else self._files
            for file, _ in self._poll.poll(0):
                self._poll.unregister(file)
                self._ended.add(files[file])
            return set(self._ended)

    def _open(self) -> dict[int, int]:
        files = self._files = {}
        for rank, process in enumerate(self.processes):
            if rank == self._rank:
                continue
            try:
                file = os.pidfd_open(process)
            except ProcessLookupError:
                self._ended.add(rank)
            except OSError as error:
                if error.errno not in (errno.ENOSYS, errno.EPERM, errno.EMFILE, errno.ENFILE):
                    raise  # else the deadline alone ends a wait for it
            else:
                files[file] = rank
                self._poll.register(file, select.POLLIN)
        return files

    def close(self) -> None:
        """Let go of the processes."""
        with self._lock:
            files, self._files, self._poll = self._files or {}, {}, select.poll()
            for file in files:
                os.close(file)
