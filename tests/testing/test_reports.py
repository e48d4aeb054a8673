"""The report of a test that fails on a rank: the cause in full, and how the test ended on each rank."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from tests.testing.conftest import Ran

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.threads

FAILS = """
@pytest.mark.ranks(3)
def test_fails(rank, comm):
    print("hello from", rank)
    if rank == 1:
        assert {"a": rank} == {"a": 5}
    comm.barrier().wait()
"""


def test_cause_is_shown_and_each_rank_has_a_line(ran: Ran) -> None:
    result = ran(FAILS)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *AssertionError: assert {'a': 1} == {'a': 5}",
            "*- 3 ranks -*",
            "  rank 0 failed: PeerError: barrier*1 of 3 ranks did not arrive: rank 1 failed with AssertionError*",
            "> rank 1 failed: AssertionError: assert {'a': 1} == {'a': 5}",
            "  rank 2 failed: *Error: *",
        ]
    )


def test_output_is_kept_apart_by_rank(ran: Ran) -> None:
    result = ran(FAILS)
    for rank in range(3):
        result.stdout.fnmatch_lines([f"*- Captured stdout of rank {rank} -*", f"hello from {rank}"])


def test_captured_output_reaches_a_test_that_asks_for_it(ran: Ran) -> None:
    result = ran(
        """
        @pytest.mark.ranks(1)
        def test_output(capsys):
            print("hello")
            assert capsys.readouterr().out == "hello\\n"
        """
    )
    result.assert_outcomes(passed=1)


def test_frames_of_the_library_are_hidden(ran: Ran) -> None:
    result = ran("@pytest.mark.ranks(2)\ndef test_shapes(rank): dist.all_reduce(torch.ones(2 + rank))")
    result.stdout.fnmatch_lines(["E *MismatchError: all_reduce: ranks disagree on shape: *"])
    assert not [line for line in result.outlines if "collshim/" in line or "distributed_c10d.py" in line]


def test_ranks_that_hang_are_told_where(ran: Ran) -> None:
    result = ran(
        """
        @pytest.mark.ranks(2, timeout=1.0)
        def test_hangs(rank, comm):
            if rank == 0: comm.barrier().wait()
            else: time.sleep(2.0)
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "rank 0 of 2 did not end: it waits in barrier() at *",
            "> rank 0 did not end: it waits in barrier() at *",
            "  rank 1 did not end: it is in no collective: it runs *",
        ]
    )


def test_skip_of_all_ranks_skips(ran: Ran) -> None:
    result = ran("@pytest.mark.ranks(2)\ndef test_skips(): pytest.skip('not here')", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*not here*"])


def test_skip_of_some_ranks_fails(ran: Ran) -> None:
    result = ran("@pytest.mark.ranks(3)\ndef test_skips(rank):\n    if rank != 1: pytest.skip('not here')")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["rank 0, 2 of 3 skipped the test, should be all ranks or none"])


def test_expected_failures_and_raises_work(ran: Ran) -> None:
    result = ran(
        """
        @pytest.mark.xfail
        @pytest.mark.ranks(2)
        def test_marked(rank): assert rank == 0
        @pytest.mark.ranks(2)
        def test_called(): pytest.xfail("known")
        @pytest.mark.ranks(2)
        def test_raises(rank):
            if rank == 0:
                with pytest.raises(ValueError): raise ValueError
        """
    )
    result.assert_outcomes(xfailed=2, passed=1)


def test_junit_and_stopping_at_the_first_failure_work(ran: Ran, pytester: pytest.Pytester) -> None:
    result = ran(f"{FAILS}\ndef test_later(): pass", "-x", "--junitxml=report.xml")
    result.assert_outcomes(failed=1)
    (suite,) = ElementTree.parse(pytester.path / "report.xml").getroot()
    (case,) = suite
    assert case.get("name") == "test_fails[3-ranks]"
    assert "assert {'a': 1} == {'a': 5}" in (case.find("failure").text or "")  # type: ignore[union-attr]


def test_failure_leaves_the_next_test_alone(ran: Ran) -> None:
    result = ran(f"{FAILS}\n@pytest.mark.ranks(3)\ndef test_next(comm): comm.barrier().wait()")
    result.assert_outcomes(failed=1, passed=1)
