"""Live ranks: they stay up, a silent rank is named and replaced, and nothing is left behind."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from collshim import current
from collshim.conformance import pool as pool_module
from collshim.conformance.bindings import find
from collshim.conformance.bindings.answers import Failure
from collshim.conformance.cases import Case
from collshim.conformance.comparison import DifferenceError, check
from collshim.conformance.patience import BEARABLE, Patience
from collshim.conformance.pool import Pool, Pools
from collshim.conformance.process_ranks import ProcessRanks
from collshim.conformance.strategies import DRAWN, cases

pytestmark = pytest.mark.processes

GATHER = find("torch.distributed.all_gather")
CASE = Case("all_gather")
Adapter = Callable[[dict[str, Any]], str]


@pytest.fixture
def silent(adapter: Adapter, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], Pool]]:
    """Return a function that starts a pool of two threads, of which rank 1 sleeps until the test is over."""
    monkeypatch.setattr(pool_module, "RELEASED_SECONDS", 0.1)
    over = threading.Event()
    started: list[Pool] = []

    def sleeps(*arguments: Any, **keywords: Any) -> None:
        if current().rank == 1:
            over.wait(30)

    def start(seconds: float) -> Pool:
        started.append(Pool("threads", 2, adapter({GATHER.path: sleeps}), seconds=seconds))
        return started[-1]

    yield start
    over.set()
    for pool in started:
        pool.close()


def test_thread_ranks_answer_repeatedly(adapter: Adapter) -> None:
    pool = Pool("threads", 2, adapter({}))
    for seed in range(20):
        case = Case("all_gather", seed=seed)
        check([GATHER] * 2, case, pool.run([GATHER] * 2, case))
    assert pool.replaced == 0
    pool.close()


def test_silent_rank_is_named_and_replaced(silent: Callable[[float], Pool]) -> None:
    pool = silent(0.5)
    answers = pool.run([GATHER] * 2, CASE)
    assert isinstance(answers[1], Failure)
    assert answers[1].message == "rank 1 of 2 did not answer in time (0.5 s)"
    assert pool.replaced == 1
    with pytest.raises(DifferenceError, match="the exception is NoAnswer: rank 1 of 2"):
        check([GATHER] * 2, CASE, answers)


def test_unstoppable_rank_is_named_at_close(silent: Callable[[float], Pool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "END_SECONDS", 0.1)
    pool = silent(0.1)
    pool.run([GATHER] * 2, CASE)
    with pytest.raises(RuntimeError, match="conformance rank 1 of 2 still run, should have ended"):
        pool.close()


def test_peers_of_a_failing_rank_learn(adapter: Adapter) -> None:
    def fails_on_rank_1(tensor_list: Any, tensor: Any, group: Any = None) -> None:
        if current().rank == 1:
            raise RuntimeError("rank 1 alone")
        current().communicator.all_gather(tensor, out=tensor_list).wait()

    pool = Pool("threads", 2, adapter({GATHER.path: fails_on_rank_1}))
    first, second = pool.run([GATHER] * 2, CASE)
    assert isinstance(first, Failure)
    assert isinstance(second, Failure)
    assert "PeerError" in first.classes
    assert second.message == "rank 1 alone"
    assert pool.replaced == 1


def test_hypothesis_shrinks_with_few_silent_cases(
    silent: Callable[[float], Pool], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_module, "GRACE_SECONDS", 0.1)
    pool, patience = silent(0.1), Patience()

    @DRAWN
    @given(case=cases(GATHER, 2))
    def agrees(case: Case) -> None:
        check([GATHER] * 2, case, patience.run(pool, [GATHER] * 2, case))

    with pytest.raises(DifferenceError, match="the exception is NoAnswer"):
        agrees()
    assert pool.replaced == BEARABLE


def test_ranks_that_refuse_alike_are_kept(adapter: Adapter) -> None:
    def refuses(tensor_list: Any, tensor: Any, group: Any = None) -> None:
        raise ValueError("no")

    pool = Pool("threads", 2, adapter({GATHER.path: refuses}))
    assert all(isinstance(answer, Failure) for answer in pool.run([GATHER] * 2, CASE))
    assert pool.replaced == 0
    pool.close()


def test_pools_leave_no_thread_behind(adapter: Adapter) -> None:
    before = set(threading.enumerate())
    pools = Pools()
    for size in (1, 3):
        assert len(
            pools.of("threads", size).run([find("oneflow.comm.all_gather")] * size, Case("all_gather", size=size))
        )
    pools.close()
    assert [thread for thread in threading.enumerate() if thread not in before] == []


def test_process_ranks_leave_no_process_or_port() -> None:
    ranks = ProcessRanks(2)
    pids, port = [process.pid for process in ranks._processes if process.pid], ranks._store.port
    ranks.ask([(find("oneflow.comm.all_gather").name, CASE)] * 2)
    found = _all_replies(ranks, 2)
    ranks.close(10.0)
    assert sorted(found) == [0, 1]
    assert not [pid for pid in pids if _alive(pid)]
    assert not _listening(port)


def test_peers_of_a_failing_process_learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "oneflow.py").write_text(FAILS_ALONE)
    monkeypatch.syspath_prepend(tmp_path)
    binding = find("oneflow.comm.all_gather")
    pool = Pool("processes", 2, "alone.")
    first, second = pool.run([binding] * 2, CASE)
    pool.close()
    assert isinstance(first, Failure)
    assert isinstance(second, Failure)
    assert "CommunicationError" in first.classes
    assert second.message == "rank 1 alone"
    assert pool.replaced == 1


FAILS_ALONE = """
from collshim import current
from collshim.conformance import pool as pool_module


class comm:
    @staticmethod
    def all_gather(tensor_list, tensor):
        if current().rank == 1:
            raise RuntimeError("rank 1 alone")
        tensor_list[:] = list(current().communicator.all_gather(tensor).wait())
"""


def test_ended_process_is_named_at_once() -> None:
    ranks = ProcessRanks(1)
    ranks._processes[0].kill()
    (reply,) = _all_replies(ranks, 1).values()
    ranks.close(10.0)
    assert isinstance(reply, Failure)
    assert reply.message == "the rank's process ended with status -9"


def _all_replies(ranks: ProcessRanks, size: int) -> dict[int, Any]:
    found: dict[int, Any] = {}
    end = time.monotonic() + 60
    while len(found) < size and time.monotonic() < end:
        found.update(ranks.replies(1.0))
    return found


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def _listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
