"""Runs of pytest on tests with the marker ``ranks``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from textwrap import dedent

import pytest
from _pytest.pytester import SysModulesSnapshot

from tests.robustness.scripts import ROOT

BEGIN = """
import os, threading, time
import pytest, torch, collshim
import torch.distributed as dist
from collshim.testing import Ranks, assert_equal_across_ranks, assert_same_on_one_rank
"""
Ran = Callable[..., pytest.RunResult]


@pytest.fixture
def ran(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Return a function that runs pytest on the source of a test module, in this process.

    Modules that the run imports stay, except its tests: a second import of torch's would register everything twice.
    """
    forget = SysModulesSnapshot.restore

    def keep(snapshot: SysModulesSnapshot) -> None:
        kept = {name: module for name, module in sys.modules.items() if not name.startswith(("test_", "conftest"))}
        forget(snapshot)
        sys.modules.update(kept)

    monkeypatch.setattr(SysModulesSnapshot, "restore", keep)
    return partial(_run, pytester, monkeypatch, pytester.runpytest_inprocess)


@pytest.fixture
def ran_apart(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Return a function that does so in another process, of which no module is imported twice."""
    return partial(_run, pytester, monkeypatch, pytester.runpytest_subprocess)


def _run(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    run: Callable[..., pytest.RunResult],
    source: str,
    *arguments: str,
    conftest: str = "",
) -> pytest.RunResult:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("PYTHONPATH", ROOT)
    for name in ("CI", "BUILD_NUMBER"):  # with these pytest prints whole messages a second time, in its summary
        monkeypatch.delenv(name, raising=False)
    if conftest:
        pytester.makeconftest(BEGIN + dedent(conftest))
    pytester.makepyfile(BEGIN + dedent(source))
    return run("-p", "no:cacheprovider", *arguments)
