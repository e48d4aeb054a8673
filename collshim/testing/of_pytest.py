"""The parts of pytest in a rank's process: the configuration, the log of a test, and fixtures that act on a process."""

from __future__ import annotations

import logging
import os
import sys
import threading
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

MADE_BY_RANKS = (
    "monkeypatch",
    "recwarn",
    "caplog",
    "capsys",
    "capsysbinary",
    "capteesys",
    "capfd",
    "capfdbinary",
)
"""pytest's fixtures that each rank's process sets up for itself, because they act on the process."""


class Node:
    """Replaces the test's node in a rank's process, for pytest's fixtures that store data on it."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.stash = pytest.Stash()

    @contextmanager
    def logging(self) -> Iterator[Any]:
        """Record log messages inside the block; yield a stream with their text."""
        from _pytest import logging as of_pytest

        handler = of_pytest.LogCaptureHandler()
        form, date = str(self.config.getini("log_format")), str(self.config.getini("log_date_format"))
        handler.setFormatter(logging.Formatter(form, date))
        self.stash[of_pytest.caplog_handler_key] = handler
        self.stash[of_pytest.caplog_records_key] = {"call": handler.records}
        level = of_pytest.get_log_level_for_setting(self.config, "log_level")
        with of_pytest.catching_logs(handler, level=level):
            yield handler.stream


@contextmanager
def thread_failures_reported() -> Iterator[None]:
    """Warn at the end of the block of exceptions that ended threads in it, as pytest does."""
    found: list[str] = []

    def note(failure: threading.ExceptHookArgs) -> None:
        name = "<unknown>" if failure.thread is None else failure.thread.name
        error = failure.exc_value or failure.exc_type()
        found.append(f"Exception in thread {name}\n\n{''.join(traceback.format_exception(error))}")

    kept, threading.excepthook = threading.excepthook, note
    try:
        yield
    finally:
        threading.excepthook = kept
    for text in found:
        warnings.warn(pytest.PytestUnhandledThreadExceptionWarning(text), stacklevel=2)


def configured(arguments: list[str]) -> pytest.Config:
    """Return pytest's configuration for a rank's process; asserts in modules imported later are rewritten."""
    os.environ.pop("PYTEST_ADDOPTS", None)
    from _pytest.assertion import util
    from _pytest.config import _prepareconfig

    # ignore options in the configuration file, such as "-n 4": they are for pytest's own process
    config = _prepareconfig([*arguments, "-o", "addopts=", "-p", "no:cacheprovider"])

    def explain(op: str, left: object, right: object) -> str | None:
        for lines in config.hook.pytest_assertrepr_compare(config=config, op=op, left=left, right=right):
            if lines:
                return "\n~".join(line.replace("\n", "\\n") for line in lines).replace("%", "%%")
        return None

    util._reprcompare = explain
    hypothesis: Any = sys.modules.get("_hypothesis_globals")
    if hypothesis is not None:
        hypothesis.in_initialization -= 1  # as its plugin does when a session starts, which does not happen here
    return config
