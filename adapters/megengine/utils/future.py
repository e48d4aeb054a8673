"""``Future``: a value that is not available yet (``megengine.utils.future``)."""

from __future__ import annotations

from threading import Event
from typing import Any

from collshim.errors import DeadlineError
from collshim.settings import get as current_options


class Future:
    """A value that is not available yet.

    Args:
        ack: whether ``set`` returns only after ``get`` has been called.
    """

    def __init__(self, ack: bool = True) -> None:
        self._ready = Event()
        self._taken = Event() if ack else None
        self._value: Any = None

    def set(self, value: Any) -> None:
        """Set the value."""
        self._value = value
        self._ready.set()
        if self._taken is not None:
            self._wait(self._taken)

    def get(self) -> Any:
        """Wait for the value and return it; raise DeadlineError after the world's deadline."""
        self._wait(self._ready)
        if self._taken is not None:
            self._taken.set()
        return self._value

    def _wait(self, event: Event) -> None:
        seconds = current_options().timeout
        if not event.wait(seconds):
            raise DeadlineError(f"{type(self).__name__}: the value did not arrive within {seconds} s")
