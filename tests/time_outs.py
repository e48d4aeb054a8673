"""A time-out between the phases of a test, or in a plugin, fails that test and not the whole run.

pytest-timeout raises wherever the worker is. Outside a phase pytest takes that for an error of its own, and ends.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None, object, object]:
    """Report an exception outside a test's phases as a failure of the test."""
    try:
        return (yield)
    except pytest.fail.Exception as error:
        _report(item, str(error))
    try:
        item.session._setupstate.teardown_exact(nextitem)  # else the next test would find this one's fixtures
    except (Exception, pytest.fail.Exception) as error:
        _report(item, f"while its fixtures ended: {type(error).__name__}: {error}")
    return True


def _report(item: pytest.Item, text: str) -> None:
    report = pytest.TestReport(item.nodeid, item.location, {}, "failed", f"Outside its phases: {text}", "call")
    item.ihook.pytest_runtest_logreport(report=report)
