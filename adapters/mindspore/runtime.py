"""``mindspore.runtime`` (source: MindSpore 2.10.0): streams and events of a device without asynchronous execution."""

from __future__ import annotations

import threading
import time
from typing import Any

import torch

from collshim.adapting.absent import saying
from collshim.adapting.refusing import refuse

__all__ = [
    "Event",
    "Stream",
    "StreamCtx",
    "communication_stream",
    "current_stream",
    "default_stream",
    "empty_cache",
    "launch_blocking",
    "set_cur_stream",
    "set_memory",
    "synchronize",
]


def synchronize() -> None:
    """Wait until this rank's computations are complete; on the CPU they always are."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


class Event:
    """A point in a stream; all work before it is already complete."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False) -> None:
        self._timed, self._at = enable_timing, 0.0

    def record(self, stream: Stream | None = None) -> None:
        """Record the current time."""
        self._at = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Do nothing: all work is complete."""

    def synchronize(self) -> None:
        """Do nothing: all work is complete."""

    def query(self) -> bool:
        """Return True: all work is complete."""
        return True

    def elapsed_time(self, end_event: Event) -> float:
        """Return the milliseconds between the records of this event and ``end_event``."""
        return (end_event._at - self._at) * 1000.0


class Stream:
    """A stream; it runs nothing asynchronously.

    Raises:
        TypeError: if an argument is not an int.
    """

    def __init__(self, priority: int = 0, **kwargs: Any) -> None:
        for name, value in {"priority": priority, **kwargs}.items():
            if not isinstance(value, int):
                refuse(TypeError, f"For 'Stream', {name!r} should be int, but got {type(value)}")
        self.id = int(kwargs.get("stream_id", 0))
        self.device_name = "CPU"

    def __repr__(self) -> str:
        return f"Stream(device_name={self.device_name}, device_id:0, stream id:{self.id})"

    def synchronize(self) -> None:
        """Wait until this rank's computations are complete."""
        synchronize()

    def query(self) -> bool:
        """Return True: all work is complete."""
        return True

    def record_event(self, event: Event | None = None) -> Event:
        """Record ``event``, or a new event, and return it."""
        made = event or Event()
        made.record(self)
        return made

    def wait_event(self, event: Event) -> None:
        """Do nothing: all work is complete."""

    def wait_stream(self, stream: Stream) -> None:
        """Do nothing: all work is complete."""


class StreamCtx:
    """A context manager that makes a stream the current one; None keeps the current one.

    Raises:
        TypeError: if the argument is not a stream.
    """

    def __init__(self, ctx_stream: Stream | None) -> None:
        if not isinstance(ctx_stream, Stream | None):
            refuse(TypeError, f"For 'StreamCtx', 'ctx_stream' should be a Stream, but got {type(ctx_stream)}")
        self.stream = ctx_stream
        self._outer = _STREAM

    def __enter__(self) -> StreamCtx:
        self._outer = current_stream()
        set_cur_stream(self.stream)
        return self

    def __exit__(self, *error: object) -> None:
        set_cur_stream(self._outer)


_STREAM = Stream()
_current = threading.local()  # ranks may be threads


def current_stream() -> Stream:
    """Return the stream set by ``StreamCtx`` or ``set_cur_stream``; the default stream if none was set."""
    return getattr(_current, "stream", _STREAM)


def default_stream() -> Stream:
    """Return the default stream."""
    return _STREAM


def communication_stream() -> Stream:
    """Return the default stream, in which collectives also run."""
    return _STREAM


def set_cur_stream(stream: Stream | None) -> None:
    """Make this stream the current one; None changes nothing."""
    if stream is not None:
        _current.stream = stream


def empty_cache() -> None:
    """Do nothing."""


def launch_blocking() -> None:
    """Do nothing: every operation already waits for its result."""


def set_memory(*args: Any, **kwargs: Any) -> None:
    """Do nothing: there is no device memory to configure."""


__getattr__ = saying(__name__)
