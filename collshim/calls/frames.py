"""Tracebacks without collshim's frames between the user's call and the error that it raises."""

from __future__ import annotations

import linecache
import os
import traceback
from pathlib import Path
from types import TracebackType

from collshim.calls.site import NOT_A_USERS, OWN, Caller, is_a_users, place
from collshim.errors import FULL, CollshimError

_MOST = 3
"""The number of lines that locate a failure: the innermost lines and the outermost one."""

_IMPORTS = f"{Path(__file__).parent.parent / 'standing_in'}{os.sep}"
"""The folder of the functions that replace Python's imports: if a program's import fails, theirs is the last frame."""


def without_library(error: BaseException) -> BaseException:
    """Remove collshim's frames from the tracebacks of an exception and of its causes; return the exception.

    If collshim raised the exception, also remove torch's frames, whose functions only pass the exception on.
    """
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        each = left.pop()
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            each.__traceback__ = _kept(each)
            left += [each.__cause__, each.__context__]
    return error


def _kept(error: BaseException) -> TracebackType | None:
    frames: list[TracebackType] = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    is_ours = isinstance(error, CollshimError | KeyboardInterrupt)
    hidden = (*NOT_A_USERS, "<frozen importlib") if is_ours else OWN
    users = [each for each in frames if not each.tb_frame.f_code.co_filename.startswith(hidden)]
    chain: TracebackType | None = None
    for each in reversed(users or frames):
        chain = TracebackType(chain, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return chain


def traceback_of(error: BaseException) -> str:
    """Return the text that Python prints for an exception, without collshim's frames.

    If collshim raised the exception, but it is not one of collshim's own, the text ends by saying how to show them.
    """
    if os.environ.get(FULL) == "1":
        return "".join(traceback.format_exception(error))
    is_unexpected = not isinstance(error, CollshimError | KeyboardInterrupt | SystemExit) and _ends_in_library(error)
    hint = f"(raised inside collshim; {FULL}=1 shows where)\n" if is_unexpected else ""
    return "".join(traceback.format_exception(without_library(error))) + hint


def _ends_in_library(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1].filename if frames else ""
    return last.startswith(OWN) and not last.startswith(_IMPORTS)


def lines_of(error: BaseException) -> list[str]:
    """Return the lines of the program that led to an exception, the innermost first: ``cell 3 line 5: step(x)``."""
    frames = [each for each in traceback.extract_tb(error.__traceback__) if is_a_users(each.filename)]
    program = [each for each in frames if "-packages" not in each.filename] or frames
    lines = [_line(each.filename, each.lineno) for each in reversed(program)]
    return lines if len(lines) <= _MOST else [*lines[: _MOST - 1], lines[-1]]


def line_of_call(caller: Caller) -> str:
    """Return the line that made a call: ``cell 3 line 5: collshim.launch(step, 2)``."""
    return _line(caller.code.co_filename, caller.line)


def _line(path: str, number: int | None) -> str:
    source = linecache.getline(path, number or 0).strip()
    return f"{place(path, number)}{f': {source}' if source else ''}"
