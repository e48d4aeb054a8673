"""The prefix of each line that a rank prints; on a terminal, each rank's prefix has a different colour."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any, TextIO

TEMPLATE = "[rank ${rank}] "
"""The template of a prefix, in the form that torch's agent reads."""

_PREFIX = re.compile(r"\[rank (\d+)\] ")
_COLOURS = (36, 33, 32, 35, 34, 96, 93, 92, 95, 94)
"""The ANSI codes that ranks use in turn: cyan, yellow, green, magenta, blue; then bright ones. Red is for errors."""


@contextmanager
def coloured() -> Iterator[None]:
    """Colour the prefixes in what this process writes to a terminal."""
    with redirect_stdout(_of(sys.stdout)), redirect_stderr(_of(sys.stderr)):
        yield


def _of(stream: TextIO) -> Any:
    return _Coloured(stream) if shows_colours(stream) else stream


def shows_colours(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with colours; NO_COLOR and FORCE_COLOR have their usual meanings."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or (stream.isatty() and os.environ.get("TERM") != "dumb")


class _Coloured:
    """A stream that colours the prefix at the start of each write; torch's agent writes line by line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text, and return its length."""
        found = _PREFIX.match(text)
        if found is not None:
            code = _COLOURS[int(found[1]) % len(_COLOURS)]
            self._stream.write(f"\x1b[{code}m{found[0]}\x1b[0m{text[found.end() :]}")
        else:
            self._stream.write(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
