"""The exit status of a process whose program came to its end, though a failure was told to nobody."""

from __future__ import annotations

import sys
from typing import Any


class _Unflushed:
    """Standard error that cannot be flushed while the interpreter ends, which Python answers with exit status 120."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def flush(self) -> None:
        """Flush; raise in the end, which nobody sees."""
        if self._stream is not None:
            self._stream.flush()
        if sys.is_finalizing():
            raise OSError("a failure was told to nobody")


def fail(text: str) -> None:
    """Write ``text`` to standard error, and let the process end with status 120; to be called at its exit.

    ``sys.exit`` and ``os._exit`` would not do there: the one does nothing, and the other skips what else is to be done.
    """
    if sys.stderr is not None:
        sys.stderr.write(f"{text}\n")
    sys.stderr = _Unflushed(sys.stderr)
