"""The exit status of a process whose program ended normally, although a failure was never reported."""

from __future__ import annotations

import sys
from typing import Any


class _Unflushed:
    """Standard error that cannot be flushed while the interpreter ends, for which Python's exit status is 120."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def flush(self) -> None:
        """Flush; raise at the interpreter's end, where the error is not shown."""
        if self._stream is not None:
            self._stream.flush()
        if sys.is_finalizing():
            raise OSError("a failure was never reported")


def fail(text: str) -> None:
    """Write ``text`` to standard error, and let the process end with status 120; to be called at its exit.

    There ``sys.exit`` would have no effect, and ``os._exit`` would skip the rest of the cleanup.
    """
    if sys.stderr is not None:
        sys.stderr.write(f"{text}\n")
    sys.stderr = _Unflushed(sys.stderr)
