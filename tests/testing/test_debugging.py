"""A debugger on a rank of a test, by pytest's options and by breakpoints; its input is a pipe, which opens late."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable

import pytest

from tests.robustness.scripts import ROOT
from tests.testing.conftest import BEGIN

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.processes

KINDS = ("threads", "processes")
TO_NEXT = "n / " if sys.version_info >= (3, 13) else ""
"""What goes on to the line after a breakpoint, at which Python before 3.13 stops by itself."""
Debugged = Callable[..., str]

FAILS = """
@pytest.mark.ranks(2, processes={processes})
def test_fails(rank, comm):
    value = 40 + rank
    if rank == 1:
        assert value == 5
    comm.barrier().wait()
"""
STOPS = """
@pytest.mark.ranks(2, processes={processes}, timeout=2.0)
def test_stops(rank, comm):
    value = 40 + rank
    if {where}: breakpoint()
    value += 1
    comm.barrier().wait()
    print("has ended", rank)
"""


@pytest.fixture
def debugged(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Debugged:
    """Return a function that runs pytest on a source and types lines, maybe late; it returns the output."""
    monkeypatch.setenv("PYTHONPATH", ROOT)

    def run(source: str, lines: str, *arguments: str, late: float = 0.0) -> str:
        pytester.makepyfile(BEGIN + source)
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            said = ""
            while late and not said.endswith("(Pdb) "):
                said += process.stdout.read(1)
            time.sleep(late)
            return said + process.communicate(lines.replace(" / ", "\n") + "\n", timeout=200)[0]

    return run


@pytest.mark.parametrize("kind", KINDS)
def test_pdb_opens_on_the_rank_that_failed(debugged: Debugged, kind: str) -> None:
    said = debugged(FAILS.format(processes=kind == "processes"), "p value / p 1000 + rank / c", "--pdb")
    assert "-> assert value == 5\n(Pdb) 41\n(Pdb) 1001\n" in said
    assert "1 failed" in said


def test_quitting_ends_the_session(debugged: Debugged) -> None:
    said = debugged(FAILS.format(processes=True) + "def test_later(): pass\n", "q", "--pdb")
    assert "PDB post_mortem on rank 1 of 2 (IO-capturing turned off)" in said
    assert "Exit: Quitting debugger" in said
    assert "1 failed in" in said


@pytest.mark.parametrize("kind", KINDS)
def test_no_deadline_passes_while_a_breakpoint_holds_a_rank(debugged: Debugged, kind: str) -> None:
    source = STOPS.format(processes=kind == "processes", where="rank == 1")
    said = debugged(source, f"p value / {TO_NEXT}n / p value / print('said') / c", "-rP", late=3.0)
    assert "PDB set_trace on rank 1 of 2 (IO-capturing turned off)" in said
    assert "(Pdb) 41\n" in said
    assert "(Pdb) 42\n(Pdb) said\n" in said
    assert "1 passed" in said
    assert all(f"has ended {rank}" in said for rank in range(2))


@pytest.mark.parametrize("kind", KINDS)
def test_other_ranks_run_on_so_that_calls_can_be_stepped_over(debugged: Debugged, kind: str) -> None:
    said = debugged(STOPS.format(processes=kind == "processes", where="True"), f"{TO_NEXT}n / n / c", late=0.5)
    assert '-> print("has ended", rank)' in said
    assert "1 passed" in said
    assert said.count("PDB set_trace") == 1


@pytest.mark.parametrize("kind", KINDS)
def test_trace_begins_on_rank_0(debugged: Debugged, kind: str) -> None:
    said = debugged(STOPS.format(processes=kind == "processes", where="False"), "n / p value / n / n / c", "--trace")
    assert "PDB runcall on rank 0 of 2" in said
    assert "-> value = 40 + rank\n" in said
    assert "(Pdb) 40\n" in said
    assert "1 passed" in said


@pytest.mark.parametrize("kind", KINDS)
def test_end_of_the_input_fails_the_test(debugged: Debugged, kind: str) -> None:
    said = debugged(STOPS.format(processes=kind == "processes", where="rank == 1"), "p value")
    if sys.version_info >= (3, 14):  # the end of the input quits the debugger, and with it pytest
        assert "Exit: Quitting debugger" in said
        assert "1 passed" not in said
    else:
        assert "rank 1 failed: BdbQuit" in said
        assert "1 failed" in said


def test_class_of_the_debugger_may_be_chosen(debugged: Debugged, pytester: pytest.Pytester) -> None:
    method = "def do_own(self, _): self.message('by its own')"
    pytester.makepyfile(own=f"import pdb\nclass Own:\n    class Debugger(pdb.Pdb):\n        {method}\n")
    said = debugged(FAILS.format(processes=True), "own / c", "--pdb", "--pdbcls=own:Own.Debugger")
    assert "by its own" in said


def test_breakpoint_in_another_thread_of_a_process_is_refused(debugged: Debugged) -> None:
    source = """
@pytest.mark.ranks(2, processes=True)
def test_thread(rank):
    from concurrent.futures import ThreadPoolExecutor
    ThreadPoolExecutor().submit(breakpoint).result()
"""
    said = debugged(source, "c")
    assert "RuntimeError: a debugger on a rank that is a process opens in the test's own thread only" in said


def test_process_that_has_ended_has_no_debugger(debugged: Debugged) -> None:
    source = "@pytest.mark.ranks(2, processes=True)\ndef test_ends(rank): rank == 1 and os._exit(3)\n"
    said = debugged(source, "c", "--pdb")
    assert "its process has ended with exit code 3" in said
    assert "1 failed" in said
