"""gloo's sends and recvs as works that can be polled, dropped, and waited for in slices.

Left to itself such a work says that it is done only after a wait, gives up the connection when a wait times out, and
takes its data along when it is dropped. So a thread waits for it as soon as anybody polls, drops or slices.
"""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from torch import Tensor


class PointToPoint:
    """One send or recv on its way. ``memory`` is what it reads or writes, held until it is over."""

    def __init__(self, work: Any, memory: Tensor) -> None:
        self._work: Any = work
        self._sent_by = work
        self._memory = memory
        self._over: threading.Event | None = None
        self._failure: list[RuntimeError] = []

    def is_completed(self) -> bool:
        """Whether the data has moved, or cannot any more."""
        return self._work is None or self._watched().is_set()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Wait, without harm to the connection when the time is over; then raise RuntimeError."""
        if self._work is not None:
            seconds = None if timeout is None else timeout.total_seconds()
            if not self._watched().wait(seconds):
                raise RuntimeError("Operation timed out!")
            self._work = None
        if self._failure:
            raise self._failure[0]
        return True

    def finish(self, seconds: float | None) -> None:
        """Wait in this thread, which is sooner; past the deadline the connection is lost."""
        if self._over is not None:
            self.wait(None if seconds is None else timedelta(seconds=seconds))
        elif self._work is not None:
            work, self._work = self._work, None
            work.wait() if seconds is None else work.wait(timedelta(seconds=seconds))

    def source(self) -> int:
        """The rank that a recv was served by."""
        rank: int = self._sent_by._source_rank()
        return rank

    def __del__(self) -> None:
        if self._work is not None and self._over is None:
            _start(self._work, self._memory, threading.Event(), [])

    def _watched(self) -> threading.Event:
        if self._over is None:
            self._over = threading.Event()
            _start(self._work, self._memory, self._over, self._failure)
        return self._over


def _start(work: Any, memory: Tensor, over: threading.Event, failure: list[RuntimeError]) -> None:
    arguments = (work, memory, over, failure)
    threading.Thread(target=_await, args=arguments, name="collshim-point-to-point", daemon=True).start()


def _await(work: Any, memory: Tensor, over: threading.Event, failure: list[RuntimeError]) -> None:
    try:
        work.wait()
    except RuntimeError as error:
        failure.append(error)  # where nobody listens any more, the group's next call says so
    over.set()
