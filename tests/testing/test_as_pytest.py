"""What a user of pytest knows works on ranks too: skips, warnings, logs, output, pytest's fixtures, unittest."""

from __future__ import annotations

import sys

import pytest

from tests.testing.conftest import Ran

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.processes

KINDS = ("threads", "processes")

ENDS = """
@pytest.mark.ranks(2, processes={processes})
def test_skips(): pytest.skip("not here")
@pytest.mark.ranks(2, processes={processes})
def test_skips_on_one(rank, comm):
    if rank == 1: pytest.skip("not here")
    comm.barrier().wait()
@pytest.mark.ranks(2, processes={processes})
def test_known_on_one(rank, comm):
    if rank == 1: pytest.xfail("known")
    comm.barrier().wait()
@pytest.mark.xfail(raises=ValueError, strict=True)
@pytest.mark.ranks(2, processes={processes})
def test_marked(rank, comm):
    if rank == 1: raise ValueError("expected")
    comm.barrier().wait()
@pytest.mark.ranks(2, processes={processes})
def test_plain(rank):
    if rank == 1: pytest.fail("only this", pytrace=False)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_ends_of_a_test_are_pytests(ran_apart: Ran, kind: str) -> None:
    result = ran_apart(ENDS.format(processes=kind == "processes"), "-rsx")
    result.assert_outcomes(skipped=1, xfailed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "rank 1 of 2 skipped the test, should be all ranks or none",
            "> rank 1 skipped: Skipped: not here",
            "*_ test_plain?2-* _*",
            "only this",
            "*- 2 ranks -*",
            "SKIPPED ?1? test_*.py:7: not here",  # the line of the test
            "XFAIL *test_known_on_one* - known",
        ]
    )


WARNS = """
import warnings
@pytest.mark.ranks(2, processes={processes})
def test_shown(comm):
    warnings.warn("to be shown")
    with pytest.warns(DeprecationWarning): comm.rank == 9 or warnings.warn("old", DeprecationWarning)
@pytest.mark.filterwarnings("error:an error")
@pytest.mark.ranks(2, processes={processes})
def test_error(rank):
    if rank == 1: warnings.warn("an error")
"""


@pytest.mark.parametrize("kind", KINDS)
def test_warnings_are_shown_once_and_filters_hold(ran_apart: Ran, kind: str) -> None:
    result = ran_apart(WARNS.format(processes=kind == "processes").replace("with pytest.warns", "#"))
    result.assert_outcomes(passed=1, failed=1, warnings=1)
    result.stdout.fnmatch_lines(["> rank 1 failed: UserWarning: an error", "*UserWarning: to be shown"])


def test_processes_have_pytests_fixtures_of_their_own(ran_apart: Ran) -> None:
    result = ran_apart(
        """
        import logging, warnings
        pytestmark = pytest.mark.ranks(2, processes=True)
        @pytest.fixture
        def changed(rank, monkeypatch): monkeypatch.setenv("OF_A_RANK", str(rank))
        def test_patched(rank, changed): assert os.environ["OF_A_RANK"] == str(rank)
        def test_undone(): assert "OF_A_RANK" not in os.environ
        def test_output(rank, capsys, comm):
            print("from", rank)
            comm.barrier().wait()
            assert capsys.readouterr().out == f"from {rank}\\n"
        def test_descriptors(rank, capfd):
            os.write(1, b"below Python")
            assert capfd.readouterr().out == "below Python"
        def test_log(rank, caplog):
            with caplog.at_level(logging.INFO): logging.getLogger("own").info("rank %d", rank)
            assert caplog.messages == [f"rank {rank}"]
        def test_warnings(recwarn):
            warnings.warn("seen")
            assert len(recwarn) == 1
        """
    )
    result.assert_outcomes(passed=6)


def test_surroundings_of_a_test_reach_processes(ran_apart: Ran) -> None:
    result = ran_apart(
        """
        pytestmark = pytest.mark.ranks(2, processes=True)
        @pytest.fixture
        def around(monkeypatch, tmp_path):
            monkeypatch.setenv("OF_THE_TEST", "1")
            monkeypatch.chdir(tmp_path)
        def test_inside(rank, around, tmp_path):
            assert (os.environ["OF_THE_TEST"], os.getcwd(), os.environ["RANK"]) == ("1", str(tmp_path), str(rank))
        def test_after(): assert "OF_THE_TEST" not in os.environ
        class TestState:
            def setup_method(self): self.value = 7
            def test_state(self): assert self.value == 7
        """
    )
    result.assert_outcomes(passed=3)


@pytest.mark.parametrize("name", ["request", "record_property"])
def test_fixtures_of_pytests_process_are_refused_in_others(ran_apart: Ran, name: str) -> None:
    result = ran_apart(f"@pytest.mark.ranks(2, processes=True)\ndef test_own({name}): pass")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"the value of '{name}' cannot be sent to a rank's process (*): use ranks that are *"])
    assert "processes.py" not in str(result.stdout)


def test_failure_of_a_process_is_shown_like_any(ran_apart: Ran) -> None:
    result = ran_apart(
        """
        import logging
        @pytest.fixture
        def ends(rank):
            yield
            assert rank == 0, "at its end"
        @pytest.mark.ranks(2, processes=True)
        def test_fixture(ends): logging.getLogger("own").warning("logged")
        class Own(Exception):
            def __init__(self, one, two): super().__init__(f"{one} and {two}")
        @pytest.mark.ranks(2, processes=True)
        def test_arguments(rank):
            value = 3
            if rank == 1: raise Own(value, 4)
        """,
        "--showlocals",
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        ["rank = 1", "E *AssertionError: at its end", "*- Captured log of rank 0 -*", "*logged"]
    )
    result.stdout.fnmatch_lines(["rank = 1", "E *Own: 3 and 4", "rank       = 1", "value      = 3"])
    assert "contextlib.py" not in str(result.stdout)


@pytest.mark.parametrize("kind", KINDS)
def test_output_is_shown_at_once_if_it_is_not_captured(ran_apart: Ran, kind: str) -> None:
    mark = f"@pytest.mark.ranks(2, processes={kind == 'processes'})"
    result = ran_apart(f"{mark}\ndef test_says(rank): print(f'from {{rank}}\\n', end='')", "-s")
    result.assert_outcomes(passed=1)
    assert all(f"from {rank}\n" in str(result.stdout) for rank in range(2))


@pytest.mark.parametrize("kind", KINDS)
def test_exit_on_a_rank_ends_the_session(ran_apart: Ran, kind: str) -> None:
    result = ran_apart(
        f"""
        @pytest.mark.ranks(2, processes={kind == "processes"})
        def test_exits(rank, comm):
            if rank == 1: pytest.exit("no more")
            comm.barrier().wait()
        def test_later(): pass
        """
    )
    result.assert_outcomes()
    result.stdout.fnmatch_lines(["*Exit: no more !*"])


def test_each_thread_has_its_own_object_of_the_class(ran: Ran) -> None:
    result = ran(
        """
        class TestOwn:
            def setup_method(self): self.value = 7
            @pytest.fixture(autouse=True)
            def prepared(self, rank, request): self.rank, self.name = rank, request.node.name
            @pytest.mark.ranks(3)
            def test_own(self, rank, comm):
                comm.barrier().wait()
                assert (self.rank, self.value, self.name) == (rank, 7, "test_own[3-ranks]")
        """
    )
    result.assert_outcomes(passed=1)


def test_methods_of_unittest_run_on_ranks(ran: Ran) -> None:
    result = ran(
        """
        import unittest
        @pytest.mark.ranks(2)
        class TestOld(unittest.TestCase):
            def setUp(self): self.value = 7
            def test_size(self): self.assertEqual((dist.get_world_size(), self.value), (2, 7))
            def test_fails(self): self.assertEqual(dist.get_rank(), 0)
            def test_skips(self): self.skipTest("not here")
        @pytest.mark.ranks(2, 3)
        class TestTwo(unittest.TestCase):
            def test_size(self): pass
        """,
        "-rs",
    )
    result.assert_outcomes(passed=1, failed=2, skipped=1)
    result.stdout.fnmatch_lines(["E *AssertionError: 1 != 0", "> rank 1 failed: AssertionError: 1 != 0"])
    result.stdout.fnmatch_lines(["ranks: the methods of a unittest.TestCase run on one number of threads, not on 2 *"])
    result.stdout.fnmatch_lines(["SKIPPED ?1? test_*.py:12: not here"])


def test_setup_is_shown_in_short(ran: Ran) -> None:
    result = ran("@pytest.mark.ranks(2, timeout=30.0)\ndef test_one(): pass", "--setup-show")
    result.stdout.fnmatch_lines(["*SETUP    F collshim_world?Ranks(2, timeout=30.0)?"])


@pytest.mark.parametrize("kind", KINDS)
def test_exception_in_a_thread_of_a_rank_is_told(ran_apart: Ran, kind: str) -> None:
    result = ran_apart(
        f"""
        def fails(): raise ValueError("of a thread")
        @pytest.mark.ranks(2, processes={kind == "processes"})
        def test_thread(rank):
            if rank == 1: threading.Thread(target=fails).start()
            time.sleep(0.2)
        """
    )
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(
        ["*PytestUnhandledThreadExceptionWarning: Exception in thread*", "*ValueError: of a thread"]
    )


@pytest.mark.parametrize("option", ["--show-capture=no", "--show-capture=stdout"])
def test_ends_of_the_ranks_are_shown_whatever_is_shown_of_the_output(ran: Ran, option: str) -> None:
    result = ran("@pytest.mark.ranks(2)\ndef test_fails(rank):\n    print('said')\n    assert rank == 0", option)
    result.stdout.fnmatch_lines(["*- 2 ranks -*", "> rank 1 failed: *assert 1 == 0"])
    assert ("Captured stdout of rank 1" in str(result.stdout)) == (option != "--show-capture=no")


def test_junit_has_the_ends_and_the_output_of_the_ranks(ran: Ran, pytester: pytest.Pytester) -> None:
    source = "@pytest.mark.ranks(2)\ndef test_fails(rank):\n    print('said by', rank)\n    assert rank == 0"
    ran(source, "--junitxml=report.xml", "-o", "junit_logging=all")
    text = (pytester.path / "report.xml").read_text()
    assert "&gt; rank 1 failed: AssertionError: assert 1 == 0" in text
    assert all(f"said by {rank}" in text for rank in range(2))


@pytest.mark.parametrize("kind", KINDS)
def test_interrupt_says_where_the_ranks_are(pytester: pytest.Pytester, kind: str) -> None:
    pytester.makepyfile(
        f"""
        import os, pytest, signal, threading, time
        @pytest.fixture
        def interrupted():
            threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        @pytest.mark.ranks(2, processes={kind == "processes"})
        def test_first(): pass  # the ranks have started
        @pytest.mark.ranks(2, processes={kind == "processes"})
        def test_waits(rank, comm, interrupted):
            if rank == 0: comm.barrier().wait()
            time.sleep(20.0)
        """
    )
    program = "import signal, pytest; signal.signal(signal.SIGINT, signal.default_int_handler); pytest.main()"
    result = pytester.run(sys.executable, "-c", program, timeout=60)
    result.stdout.fnmatch_lines(["*KeyboardInterrupt*", "*rank 0 *barrier*", "*rank 1 *test_*.py:*"])
