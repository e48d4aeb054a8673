"""Find the line of the user's code that made a call: the nearest one outside collshim and torch."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import torch

from collshim.calls.cells import MARK, cell_of
from collshim.errors import UsageWarning, text_of

_LONG, _END = 300, 80
"""The length above which a rank's failure is shortened, since it can itself quote another rank's failure, and how many
characters of its end are then kept."""


def _own() -> tuple[str, ...]:
    """Return collshim's folders, including those to which links in a checkout lead."""
    package = Path(__file__).parent.parent
    links = [entry.resolve() for entry in package.glob("*") if entry.is_symlink()]
    return tuple(f"{folder}{os.sep}" for folder in (package, *links))


OWN = _own()
"""The folders of collshim's code."""

NOT_A_USERS = (*OWN, *(f"{folder}{os.sep}" for folder in torch.__path__), contextlib.__file__)
"""The folders and files that are not the user's.

In a backward pass, or if torch calls its own process group, torch's frames are between the user's and collshim's. At
the end of a block whose calls are posted together, contextlib's frames are there.
"""

_LOOKING = threading.Lock()
"""Held while a thread looks at another thread's frame, since the thread turns the garbage collector off and on."""

_OF_PYTHON = f"{Path(os.__file__).parent}{os.sep}"
_PYTESTS = f"{os.sep}_pytest{os.sep}"
"""The folder of pytest, whose functions raise a test's skip or failure."""

_skipped: set[int] = set()
_users: dict[int, CodeType] = {}
"""The user's functions that made calls, by identity; no identity is reused, because the functions are kept."""
_MOST = 1024
_make: Any = tuple.__new__  # makes a named tuple in a third of the time
_warned: dict[str, dict[Any, Any]] = {}


class Caller(NamedTuple):
    """The code and the line that made a call."""

    code: CodeType
    line: int

    def site(self) -> str:
        """Return ``file:line``, or ``cell 3 line 5``, for error texts."""
        path = self.code.co_filename
        if MARK in path:  # saves a function call in every call
            return place(path, self.line)
        return f"{path.rpartition('/')[2]}:{self.line}"


def place(path: str, line: int | None) -> str:
    """Return a line of the program, for error texts: ``train.py:12`` or, in a notebook, ``cell 3 line 5``."""
    cell = cell_of(path)
    return f"{cell} line {line}" if cell else f"{path.rpartition('/')[2]}:{line}"


def caller(above: int = 1) -> Caller:
    """Return the nearest caller outside collshim and torch.

    A function whose callers belong to collshim passes how many frames ``above`` this one to start, because making
    frames takes most of the time.
    """
    frame = sys._getframe(above)
    code = frame.f_code
    while (number := id(code)) not in _users:
        if (number in _skipped or _is_skipped(code)) and (back := frame.f_back) is not None:
            frame, code = back, back.f_code
            continue
        if len(_users) >= _MOST:
            _users.clear()
        _users[number] = code
        break
    made: Caller = _make(Caller, (code, frame.f_lineno))
    return made


def user_frame(above: int) -> tuple[FrameType, list[CodeType]]:
    """Return the frame of the nearest caller outside collshim and torch, and the code of the frames in between."""
    frame, skipped = sys._getframe(above), list[CodeType]()
    while frame.f_back is not None and _is_skipped(frame.f_code):
        skipped.append(frame.f_code)
        frame = frame.f_back
    return frame, skipped


def _is_skipped(code: CodeType) -> bool:
    skipped = code.co_filename.startswith(NOT_A_USERS)
    if skipped:
        _skipped.add(id(code))  # these functions live as long as the process
    return skipped


def line_of(thread: int) -> str:
    """Return the line of the user's program that a thread runs, with its function: ``train.py:12 in main``; or "".

    ``thread`` is the thread's ``threading.get_ident()``.
    """
    frame = _frame_of(thread)
    while frame is not None and not is_a_users(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    code = frame.f_code
    site = Caller(code, frame.f_lineno).site()
    return site if code.co_name == "<module>" else f"{site} in {code.co_name}"


def _frame_of(thread: int) -> FrameType | None:
    """Return the frame that a thread runs; None if it has ended.

    The garbage collector must not run meanwhile: in Python 3.11.7, among others, ``sys._current_frames`` holds a lock
    that every thread takes as it starts and ends. If a destructor released the GIL, all threads could wait without end.
    """
    with _LOOKING:
        collects = gc.isenabled()
        gc.disable()
        try:
            return sys._current_frames().get(thread)
        finally:
            if collects:
                gc.enable()


def is_a_users(path: str) -> bool:
    """Return whether a file belongs neither to Python, nor to collshim, nor to torch."""
    is_of_python = path.startswith(_OF_PYTHON) and "-packages" not in path
    return not (is_of_python or path.startswith((*NOT_A_USERS, "<frozen")))


def activity_of(threads: Sequence[int], last: str) -> str:
    """Say what a rank outside any collective is doing: the lines that its threads run, and its last call."""
    lines = list(dict.fromkeys(filter(None, map(line_of, threads))))
    runs = f"it runs {' and '.join(lines)}" if lines else ""
    after = f"its last call was {last}" if last else ""
    details = ", ".join(filter(None, (runs, after)))
    return "is in no collective" + (f": {details}" if details else "")


def warn_at(caller: Caller, text: str) -> None:
    """Issue a ``UsageWarning`` for the line that made a call, not for the line that detects the misuse."""
    path = caller.code.co_filename
    warnings.warn_explicit(text, UsageWarning, path, caller.line, registry=_warned.setdefault(path, {}))


def how_it_failed(error: BaseException) -> str:
    """Describe for the other ranks an exception that ended a rank: its class, its first line, and its origin."""
    text = text_of(error).partition("\n")[0]
    if len(text) > _LONG:  # the end might say that ranks are numbered in a group
        text = f"{text[: _LONG - _END]} ... {text[-_END:]}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not (frame.filename.startswith(NOT_A_USERS) or _PYTESTS in frame.filename)]
    site = own[-1] if own else None
    where = "" if site is None else f" (at {place(site.filename, site.lineno)})"
    return f"failed with {type(error).__name__}{': ' if text else ''}{text}{where}"


def where_interrupted(interrupt: BaseException, last: str) -> str:
    """Describe where Ctrl-C interrupted a rank, its last call, and what its wait reports about missing ranks."""
    frames = reversed(traceback.extract_tb(interrupt.__traceback__))
    frame = next((frame for frame in frames if is_a_users(frame.filename)), None)
    at = "" if frame is None else f" at {place(frame.filename, frame.lineno)}"
    after = f"; its last call was {last}" if last else ""
    return "\n  ".join([f"interrupted{at}{after}", *getattr(interrupt, "__notes__", ())])


def not_returned(late: Mapping[int, str]) -> str:
    """Describe the ranks that have not returned at the deadline, from what each of them is doing."""
    return "; ".join(f"rank {rank} has not returned: it {text}" for rank, text in late.items())
