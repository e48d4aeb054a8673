"""Tests on ranks that are processes: kept between tests, replaced after a failure."""

from __future__ import annotations

import pytest

from tests.testing.conftest import Ran

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.processes


def test_body_runs_on_every_process(ran_apart: Ran) -> None:
    result = ran_apart(
        """
        from dataclasses import dataclass
        @dataclass
        class Sent: value: int
        @pytest.fixture
        def sent(): return Sent(7)
        @pytest.fixture
        def mine(rank, sent, comm):
            yield rank + sent.value
            comm.barrier().wait()
        class TestProcesses:
            @pytest.mark.ranks(2, processes=True)
            @pytest.mark.parametrize("n", [1, 2])
            def test_sum(self, rank, comm, mine, n, tmp_path, world_size):
                assert (mine, world_size) == (rank + 7, 2)
                assert len(set(comm.all_gather_object(os.getpid()).wait())) == 2
                total = torch.tensor([n])
                dist.all_reduce(total)
                assert total.item() == 2 * n and tmp_path.exists()
        """
    )
    result.assert_outcomes(passed=2)


def test_processes_stay_up_until_a_test_fails(ran_apart: Ran) -> None:
    result = ran_apart(
        """
        FILE = os.environ["NOTES"]
        def noted(rank):
            with open(FILE, "a") as file: file.write(f"{rank}:{os.getpid()}\\n")
        @pytest.mark.ranks(2, processes=True)
        def test_first(rank): noted(rank)
        @pytest.mark.ranks(2, processes=True)
        def test_second(rank): noted(rank)
        @pytest.mark.ranks(2, processes=True)
        def test_fails(rank): assert rank == 0
        @pytest.mark.ranks(2, processes=True)
        def test_third(rank): noted(rank)
        def test_notes():
            seen = open(FILE).read().split()
            assert len(seen) == 6 and len(set(seen)) == 4
            assert set(seen[:2]) == set(seen[2:4])
        """,
    )
    result.assert_outcomes(passed=4, failed=1)


@pytest.fixture(autouse=True)
def notes(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOTES", f"{tmp_path}/notes")


def test_report_of_a_process_shows_the_cause(ran_apart: Ran) -> None:
    result = ran_apart(
        """
        @pytest.mark.ranks(3, processes=True)
        def test_fails(rank, comm):
            print("hello from", rank)
            if rank == 1:
                assert {"a": rank} == {"a": 5}
            comm.barrier().wait()
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "E *AssertionError: assert {'a': 1} == {'a': 5}",
            "  rank 0 failed: *rank 1 failed with AssertionError*",
            "> rank 1 failed: AssertionError: assert {'a': 1} == {'a': 5}",
            "*- Captured stdout of rank 1 -*",
            "hello from 1",
            "FAILED *test_fails?3-processes? - Assert*",
        ]
    )


def test_process_that_ends_is_told(ran_apart: Ran) -> None:
    result = ran_apart("@pytest.mark.ranks(2, processes=True)\ndef test_ends(rank): os._exit(3) if rank else None")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["> rank 1 did not end: its process has ended with exit code 3"])


def test_processes_that_hang_are_told_where(ran_apart: Ran) -> None:
    result = ran_apart(
        """
        @pytest.mark.ranks(2, processes=True, timeout=2.0)
        def test_hangs(rank, comm):
            if rank == 0: comm.barrier().wait()
            else: time.sleep(30.0)
        """
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*rank 0 did not end: interrupted at *; its last call was barrier*", "*1 of 2 ranks*"])


LOCK = """
@pytest.fixture
def lock(): return threading.Lock()
@pytest.mark.ranks(2, processes=True)
def test_lock(lock): pass
"""
LOCAL = """
def made():
    @pytest.mark.ranks(2, processes=True)
    def test_made(): pass
    return test_made
test_made = made()
"""


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (LOCK, "*the value of 'lock' cannot be sent to a rank's process (*): let 'lock' request `rank`*"),
        (LOCAL, "*test_made is local to a function, so a rank's process cannot import it*"),
    ],
)
def test_unsendable_tests_are_refused(ran_apart: Ran, source: str, text: str) -> None:
    result = ran_apart(source)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([text])


def test_skip_and_hypothesis_work_in_processes(ran_apart: Ran) -> None:
    result = ran_apart(
        """
        from hypothesis import given, settings, strategies as st
        @pytest.mark.ranks(2, processes=True)
        def test_skips(): pytest.skip("not here")
        @pytest.mark.ranks(2, processes=True)
        @settings(max_examples=10, database=None, deadline=None)
        @given(value=st.integers(0, 9))
        def test_sum(value):
            total = torch.tensor([value])
            dist.all_reduce(total)
            assert total.item() == 2 * value
        """
    )
    result.assert_outcomes(skipped=1, passed=1)


def test_workers_of_xdist_have_ranks_of_their_own(ran_apart: Ran) -> None:
    result = ran_apart(
        """
        @pytest.mark.parametrize("n", range(4))
        @pytest.mark.ranks(2, processes=True)
        def test_sum(comm, n): assert comm.all_reduce(torch.tensor(n)).wait().item() == 2 * n
        """,
        "-n2",
    )
    result.assert_outcomes(passed=4)


def test_options_of_the_configuration_keep_no_rank_from_starting(ran_apart: Ran, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\naddopts = -ra -q --strict-markers --tb=short -n 2\n")
    result = ran_apart(
        "@pytest.mark.ranks(2, processes=True)\ndef test_fixture(rank, mine): assert mine == 10 * rank",
        conftest="@pytest.fixture\ndef mine(rank): return 10 * rank",
    )
    result.assert_outcomes(passed=1)


def test_processes_that_cannot_start_fail_the_test(ran_apart: Ran) -> None:
    result = ran_apart(
        "@pytest.mark.ranks(2, processes=True)\ndef test_ranks(): pass",
        conftest="if os.environ.get('WORLD_SIZE'): raise RuntimeError('no licence')",
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the ranks' processes did not start: rank * of 2 failed: *no licence*"])
