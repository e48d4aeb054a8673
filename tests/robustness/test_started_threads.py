"""Threads that ranks start, if ranks are threads: they get their rank's answers, and their calls are refused."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch

import collshim
import collshim.torch.distributed as dist
from collshim.world import use
from tests.engine.worlds import Outcome, attempt, on_ranks, world
from tests.robustness.scenarios.questions import CALLS, answers, enter

PATIENCE = 30.0


def _in_a_thread(asks: Callable[[], Any]) -> Outcome:
    found = list[Outcome]()
    thread = threading.Thread(target=lambda: found.append(attempt(asks)))
    thread.start()
    thread.join(PATIENCE)
    return found[0]


def _in_a_thread_of_a_thread(asks: Callable[[], Any]) -> Outcome:
    inner: Outcome = _in_a_thread(lambda: _in_a_thread(asks)).value
    return inner


def _in_a_pool(asks: Callable[[], Any]) -> Outcome:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(attempt, asks).result(PATIENCE)


WAYS = {"a thread": _in_a_thread, "a thread of a thread": _in_a_thread_of_a_thread, "a pool": _in_a_pool}


def _answered(way: str) -> tuple[Any, Any]:
    enter()
    return answers(), WAYS[way](answers).value


@pytest.mark.parametrize("way", WAYS)
def test_started_thread_gets_the_answers_of_its_rank(way: str) -> None:
    for rank, (own, found) in enumerate(on_ranks(_answered, 2, "threads", way)):
        assert found == own
        assert own[:3] == [True, rank, 2]


def test_pool_tasks_get_answers_of_the_submitting_rank() -> None:
    with ThreadPoolExecutor(1) as pool:
        found = on_ranks(
            lambda: [pool.submit(lambda: collshim.current().rank).result() for _ in range(20)], 3, "threads"
        )
    assert found == [[rank] * 20 for rank in range(3)]


def _refused(way: str) -> dict[str, Outcome]:
    enter()
    calls = {"the engine's": lambda: world().all_reduce(torch.ones(3)).wait(), **CALLS}
    messages = {"a send": lambda: world().send(torch.ones(3), 0), "a group": lambda: world().subgroup([0, 1])}
    return {name: WAYS[way](call) for name, call in (calls | messages).items()}


@pytest.mark.parametrize("way", WAYS)
def test_calls_of_a_started_thread_are_refused(way: str) -> None:
    for rank, found in enumerate(on_ranks(_refused, 2, "threads", way)):
        for name, seen in found.items():
            assert "WorldError" in seen.raised, (name, seen)
            assert f"was started by <World: rank {rank} of 2> and is not a rank itself" in seen.text
            assert "collshim.world.use(world)" in seen.text


def _enters() -> float:
    own = collshim.current()

    def reduce() -> float:
        with use(own):
            return float(own.communicator.all_reduce(torch.ones(1)).wait())

    value: float = _in_a_thread(reduce).value
    return value


def test_started_thread_can_enter_the_world() -> None:
    assert on_ranks(_enters, 2, "threads") == [2.0, 2.0]


def test_pool_outliving_its_ranks_is_no_rank() -> None:
    with ThreadPoolExecutor(1) as pool:
        on_ranks(lambda: pool.submit(lambda: None).result(), 1, "threads")
        assert not pool.submit(dist.is_initialized).result()


def test_thread_started_by_no_rank_is_told() -> None:
    """Between the launch of ranks and their end, the main thread is none of them."""
    goes_on, is_there = threading.Event(), threading.Event()

    def rank() -> None:
        is_there.set()
        goes_on.wait(PATIENCE)

    ranks = threading.Thread(target=collshim.launch, args=(rank, 2))
    ranks.start()
    try:
        assert is_there.wait(PATIENCE)
        with pytest.raises(ValueError, match="none of them started this thread"):
            dist.all_reduce(torch.ones(3))
        assert not dist.is_initialized()
    finally:
        goes_on.set()
        ranks.join(PATIENCE)
