"""Tracebacks without the frames of collshim, between the user's call and the error that it raises."""

from __future__ import annotations

import os
import traceback
from types import TracebackType

from collshim.calls.site import NOT_A_USERS, OWN
from collshim.errors import CollshimError

FULL = "COLLSHIM_FULL_TRACE"
"""If this variable is 1, tracebacks keep collshim's frames."""


def without_library(error: BaseException) -> BaseException:
    """Remove collshim's frames from the tracebacks of an exception and of those that led to it; return it.

    If collshim raised the exception, torch's frames go too: its functions only pass the exception on.
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

    If collshim raised it, and it is none of collshim's own exceptions, the text ends with how to see the frames.
    """
    if os.environ.get(FULL) == "1":
        return "".join(traceback.format_exception(error))
    is_unexpected = not isinstance(error, CollshimError | KeyboardInterrupt | SystemExit) and _ends_in_library(error)
    hint = f"(raised inside collshim; {FULL}=1 shows where)\n" if is_unexpected else ""
    return "".join(traceback.format_exception(without_library(error))) + hint


def _ends_in_library(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.startswith(OWN)
