"""Shows the failure of a rank's process as pytest shows a test's failure."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from types import CodeType
from typing import Any, NamedTuple

import pytest

from collshim.calls.frames import without_library
from collshim.errors import text_of
from collshim.testing.outcomes import ENDED_ALL, SKIPPED, XFAILED


class Style(NamedTuple):
    """The options of pytest that control how a failure is shown."""

    style: str = "auto"
    locals: bool = False
    full: bool = False
    verbosity: int = 0

    @classmethod
    def of(cls, config: pytest.Config) -> Style:
        """Return the options of a run."""
        verbosity = config.get_verbosity()
        shows_locals, is_full = (bool(config.getoption(name, False)) for name in ("showlocals", "fulltrace"))
        return cls(str(config.getoption("tbstyle", "auto")), shows_locals, is_full, verbosity)

    def show(self, error: BaseException, function: Callable[..., Any] | None) -> Any:
        """Return the report of a test function's failure, in a form that can be pickled."""
        if isinstance(error, pytest.fail.Exception) and not error.pytrace:
            chosen = "value"
        else:
            chosen = "long" if self.style == "auto" or self.full else self.style
        if not self.full:
            without_library(error)
        info = pytest.ExceptionInfo.from_exception(error)
        code = getattr(function, "__code__", None)
        return info.getrepr(
            showlocals=self.locals,
            style=chosen,  # type: ignore[arg-type]
            funcargs=True,
            tbfilter=False if self.full else lambda info: self._filtered(info, code),
            truncate_locals=self.verbosity <= 1,
        )

    def _filtered(self, info: pytest.ExceptionInfo[BaseException], code: CodeType | None) -> Any:
        """Begin at the test, and shorten the frames between the first and the last one, as pytest does."""
        trace = info.traceback
        if code is not None:
            trace = trace.cut(path=code.co_filename, firstlineno=code.co_firstlineno - 1)
            trace = trace.cut(path=code.co_filename)
        trace = trace.filter(info)
        if self.style != "auto" or len(trace) <= 2:
            return trace
        return type(trace)((trace[0], *(each.with_repr_style("short") for each in trace[1:-1]), trace[-1]))


def place_of(error: BaseException) -> tuple[str, int] | None:
    """Return the file and the line of a skip."""
    crash = pytest.ExceptionInfo.from_exception(error)._getreprcrash()
    return None if crash is None else (os.path.abspath(crash.path), crash.lineno)


class Sent(NamedTuple):
    """An exception in the form in which a rank's process sends it; pytest's process may not know its class."""

    text: str
    kind: str
    pickled: bytes

    @classmethod
    def of(cls, error: BaseException, kind: str) -> Sent:
        """Return the form of an exception that can be sent."""
        try:
            kept = pickle.dumps(error)
            pickle.loads(kept)
        except Exception:  # a class may raise anything
            kept = b""
        return cls(text_of(error), kind, kept)

    def read(self) -> BaseException:
        """Return the exception or, if it cannot be unpickled, a failure with its text."""
        if self.kind in _OUTCOMES:
            made: BaseException = _OUTCOMES[self.kind](self.text)
            return made
        try:
            found = pickle.loads(self.pickled)
        except Exception:  # no bytes, or a class that is unknown here
            found = None
        return found if isinstance(found, BaseException) else pytest.fail.Exception(self.text, pytrace=False)


_OUTCOMES: dict[str, Any] = {
    SKIPPED: pytest.skip.Exception,
    XFAILED: pytest.xfail.Exception,
    ENDED_ALL: pytest.exit.Exception,
}
"""pytest's exception classes that cannot be pickled."""


def add_notes(shown: Any, notes: list[str]) -> None:
    """Show the notes that were added to the exception after it was sent; Hypothesis adds its example."""
    entries = getattr(getattr(shown, "reprtraceback", None), "reprentries", None)
    if not entries:
        return
    for note in notes:
        entries[-1].lines += [f"E   {line}" for line in note.splitlines()]
