"""A test that exceeds its time-out is one failed test, whatever code it was in."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PLUGIN = """
import time, pytest

@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_protocol(item):
    yield
    if "a_plugin" in item.name:
        time.sleep(5)

def pytest_runtest_logreport(report):
    if "a_report" in report.nodeid and report.when == "setup":
        time.sleep(5)
"""
TESTS = """
import time, pytest

@pytest.fixture(scope="module")
def shared():
    yield 1

@pytest.fixture
def late():
    yield
    time.sleep(5)

def test_in_its_call(): time.sleep(5)
def test_in_a_fixture(late): pass
def test_in_a_plugin(shared): pass
def test_in_a_report(shared): pass
def test_after_them(shared): assert shared == 1
"""


@pytest.mark.parametrize("workers", ["0", "1"])
def test_time_out_is_one_failed_test(tmp_path: Path, workers: str) -> None:
    (tmp_path / "conftest.py").write_text(PLUGIN)
    (tmp_path / "test_late.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-p", "tests.time_outs", f"--numprocesses={workers}", "--timeout=1"]
    options = [
        "-Werror",
        "-Wignore::pluggy.PluggyTeardownRaisedWarning",
        "-p",
        "no:cacheprovider",
        f"--rootdir={tmp_path}",
    ]
    where = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        [*command, *options], cwd=tmp_path, env=where, capture_output=True, text=True, timeout=200, check=False
    )
    assert "INTERNALERROR" not in ran.stdout + ran.stderr
    told = ran.stdout.partition("short test summary info")[2]
    for name in ("in_its_call", "in_a_plugin", "in_a_report"):
        assert f"FAILED test_late.py::test_{name}" in told
    assert "ERROR test_late.py::test_in_a_fixture" in told
    assert "test_after_them" not in told
