"""Sends that nobody waits for any more are waited for here, so that their data arrives and their memory is freed."""

from __future__ import annotations

import queue
import threading
from typing import Any, ClassVar


class Reaper:
    """The process's thread; it sees the abandoned works one after the other."""

    _abandoned: ClassVar[queue.SimpleQueue[tuple[list[Any], Any]]] = queue.SimpleQueue()
    _thread: ClassVar[threading.Thread | None] = None

    @classmethod
    def take(cls, works: list[Any], kept: Any) -> None:
        """Wait for ``works``, and hold ``kept``, the memory that they read, until then."""
        cls._abandoned.put((works, kept))
        if cls._thread is None or not cls._thread.is_alive():
            cls._thread = threading.Thread(target=cls._run, name="collshim-reaper", daemon=True)
            cls._thread.start()

    @classmethod
    def _run(cls) -> None:
        while True:
            works, kept = cls._abandoned.get()
            for work in works:
                cls._wait(work)
            del works, kept

    @staticmethod
    def _wait(work: Any) -> None:
        try:
            work.wait()
        except RuntimeError:
            return  # the connection broke: the group's next call says so to somebody who listens
