"""Where a user's code called: the nearest file and line that are neither collshim's nor torch's, for error texts."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

import torch

from collshim.errors import UsageWarning, text_of

_LONG = 240
"""Characters after which what ended another rank is cut: it may contain what ended a third one."""


def _folders() -> tuple[str, ...]:
    """Whose files are not a user's: collshim's, with what its links lead to in a checkout, and torch's.

    torch's frames lie between a user's and collshim's in a backward, or where torch calls its own process group;
    contextlib's at the end of a block, whose calls are posted together.
    """
    package = Path(__file__).parent.parent
    links = [entry.resolve() for entry in package.glob("*") if entry.is_symlink()]
    return (*(f"{folder}{os.sep}" for folder in (package, *links, *torch.__path__)), contextlib.__file__)


_NOT_A_USERS = _folders()
_OF_PYTHON = f"{Path(os.__file__).parent}{os.sep}"
_passed_by: set[int] = set()
_warned: dict[str, dict[Any, Any]] = {}


class Caller(NamedTuple):
    """Where a call was made: code and line."""

    code: CodeType
    line: int

    def site(self) -> str:
        """``file:line``, for error texts."""
        return f"{self.code.co_filename.rpartition('/')[2]}:{self.line}"


def caller() -> Caller:
    """The nearest caller outside collshim and torch."""
    frame = sys._getframe(1)
    while frame.f_back is not None and (id(frame.f_code) in _passed_by or _is_passed_by(frame.f_code)):
        frame = frame.f_back
    return Caller(frame.f_code, frame.f_lineno)


def _is_passed_by(code: CodeType) -> bool:
    passed = code.co_filename.startswith(_NOT_A_USERS)
    if passed:
        _passed_by.add(id(code))  # these functions live as long as the process
    return passed


def line_of(thread: int) -> str:
    """The line of a user's program that a thread runs, and its function: ``train.py:12 in main``; empty if it has none.

    ``thread`` is what ``threading.get_ident`` returns in it.
    """
    frame = sys._current_frames().get(thread)
    while frame is not None and not _is_a_users(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    code = frame.f_code
    site = Caller(code, frame.f_lineno).site()
    return site if code.co_name == "<module>" else f"{site} in {code.co_name}"


def _is_a_users(path: str) -> bool:
    """Whether a file is neither Python's own, nor collshim's or torch's."""
    is_of_python = path.startswith(_OF_PYTHON) and "-packages" not in path
    return not (is_of_python or path.startswith((*_NOT_A_USERS, "<frozen")))


def activity_of(threads: Sequence[int], last: str) -> str:
    """What a rank does that waits in no collective, in words: the lines that its threads run, and its last call."""
    lines = list(dict.fromkeys(filter(None, map(line_of, threads))))
    runs = f"it runs {' and '.join(lines)}" if lines else ""
    after = f"its last call was {last}" if last else ""
    details = ", ".join(filter(None, (runs, after)))
    return "is in no collective" + (f": {details}" if details else "")


def warn_at(caller: Caller, text: str) -> None:
    """A ``UsageWarning`` of the line that made a call, whatever line finds out."""
    path = caller.code.co_filename
    warnings.warn_explicit(text, UsageWarning, path, caller.line, registry=_warned.setdefault(path, {}))


def how_it_failed(error: BaseException) -> str:
    """The text for the other ranks of an exception that ends a rank: its class, its first line, and where it arose."""
    text = text_of(error).partition("\n")[0]
    text = text if len(text) <= _LONG else f"{text[:_LONG]} ..."
    frames = traceback.extract_tb(error.__traceback__)
    site = next((frame for frame in reversed(frames) if not frame.filename.startswith(_NOT_A_USERS)), None)
    where = "" if site is None else f" (at {site.filename.rpartition('/')[2]}:{site.lineno})"
    return f"failed with {type(error).__name__}{': ' if text else ''}{text}{where}"


def where_interrupted(interrupt: BaseException, last: str) -> str:
    """Where Ctrl-C came to a rank, its last call, and what its wait says of the ranks that are missing."""
    frames = reversed(traceback.extract_tb(interrupt.__traceback__))
    frame = next((frame for frame in frames if _is_a_users(frame.filename)), None)
    at = "" if frame is None else f" at {frame.filename.rpartition('/')[2]}:{frame.lineno}"
    after = f"; its last call was {last}" if last else ""
    return "\n  ".join([f"interrupted{at}{after}", *getattr(interrupt, "__notes__", ())])


def traceback_of(error: BaseException) -> str:
    """The text that Python prints of an exception, with its traceback."""
    return "".join(traceback.format_exception(error))
