"""Waits between processes: a rank that sleeps is woken, and no wait outlasts its deadline.

A wake-up that is lost shows as a wait that lasts much longer than the test's own deadline for its result.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from collshim.transports.shared_memory.layout import DONE, NOTHING, POSTED, RELEASED, STAGE, WAITING
from tests.shared_memory.children import Child
from tests.shared_memory.rings import Group, has_slept, missing, post

pytestmark = pytest.mark.processes

LONG, SOON = 600.0, 30.0
"""Seconds of a wait that must end before, and of the test's patience with it."""


@pytest.fixture(params=[0, 1], ids=["rank 0 waits", "rank 1 waits"])
def waiting(request: pytest.FixtureRequest) -> Any:
    """Return the rank that waits; the other one is awaited."""
    return request.param


@pytest.fixture
def pair(forms: tuple[str, str]) -> Group:
    return Group(forms, 2, spins=1)


def woken(pair: Group, waiting: int, which: int, wake: Callable[[Any], object]) -> Any:
    """Let a rank wait in a process of its own; let the other one wake it up once it sleeps; return the outcome."""
    with Child(lambda: pair.rings[waiting].wait(which, 0, LONG, True)) as child:
        assert has_slept(child.pid)
        wake(pair.rings[1 - waiting])
        return child.result(SOON)


def test_sleeping_rank_is_woken_by_a_post(pair: Group, waiting: int) -> None:
    post(pair.rings[waiting], b"")
    assert woken(pair, waiting, POSTED, lambda other: post(other, b"")) is True


@pytest.mark.parametrize("which", [RELEASED, STAGE])
def test_sleeping_rank_is_woken_by_a_counter(pair: Group, waiting: int, which: int) -> None:
    pair.rings[waiting].advance(which, 1)
    assert woken(pair, waiting, which, lambda other: other.advance(which, 1)) is True


def test_sleeping_rank_is_woken_by_an_end(pair: Group, waiting: int) -> None:
    post(pair.rings[waiting], b"")
    assert woken(pair, waiting, POSTED, lambda other: other.end()) is False


def test_rank_is_woken_by_an_end_of_a_rank_that_it_does_not_sleep_on(forms: tuple[str, str]) -> None:
    ranks = Group(forms, 3, spins=1)
    with Child(lambda: ranks.rings[0].wait(POSTED, 0, LONG, True)) as child:  # for rank 0, which is the first
        assert has_slept(child.pid)
        ranks.rings[2].end()
        assert child.result(SOON) is False


@pytest.mark.parametrize("first", [0, 1, 2])
def test_rank_sleeps_until_the_last_has_posted(forms: tuple[str, str], first: int) -> None:
    ranks = Group(forms, 3, spins=1)
    with Child(lambda: ranks.rings[1].wait(POSTED, 0, LONG, True)) as child:
        for rank in (first, (first + 1) % 3, (first + 2) % 3):
            assert has_slept(child.pid)
            post(ranks.rings[rank], b"")
        assert child.result(SOON) is True


def test_wait_of_an_ended_group_is_over(pair: Group) -> None:
    pair.rings[0].end()
    assert [own.wait(POSTED, 0, LONG, True) for own in pair.rings] == [False, False]


def test_calls_posted_before_an_end_have_passed(pair: Group) -> None:
    pair.post_all()
    pair.rings[0].end()
    assert [own.wait(POSTED, 0, LONG, True) for own in pair.rings] == [True, True]


@pytest.mark.parametrize("seconds", [-1.0, 0.0, 0.001, 0.05])
def test_wait_ends_at_its_deadline(pair: Group, waiting: int, seconds: float) -> None:
    post(pair.rings[waiting], b"")
    start = time.monotonic()
    assert pair.rings[waiting].wait(POSTED, 0, seconds, True) is False
    assert time.monotonic() - start >= seconds


def test_later_part_of_a_wait_does_not_poll(forms: tuple[str, str], waiting: int) -> None:
    ranks = Group(forms, 2, spins=10**9)
    with Child(lambda: ranks.rings[waiting].wait(POSTED, 0, 0.05, False)) as child:
        assert child.result(SOON) is False


def test_rank_that_ends_without_a_word_leaves_the_deadline(pair: Group, waiting: int) -> None:
    post(pair.rings[waiting], b"")
    with Child(lambda: pair.rings[1 - waiting].wait(POSTED, 0, LONG, True)) as other:
        assert has_slept(other.pid)
        other.kill()
    assert pair.rings[waiting].wait(POSTED, 0, 0.05, True) is False


def test_signal_interrupts_a_sleeping_wait(pair: Group, waiting: int) -> None:
    def wait() -> str:
        try:
            return f"the wait returned {pair.rings[waiting].wait(POSTED, 0, LONG, True)}"
        except KeyboardInterrupt:
            return "KeyboardInterrupt"

    with Child(wait) as child:
        assert has_slept(child.pid)
        os.kill(child.pid, signal.SIGINT)
        assert child.result(SOON) == "KeyboardInterrupt"


def test_interrupted_wait_can_be_resumed(pair: Group, waiting: int) -> None:
    def wait() -> tuple[list[str], bool]:
        seen: list[str] = []
        while True:
            try:
                return seen, pair.rings[waiting].wait(POSTED, 0, LONG, True)
            except KeyboardInterrupt:
                seen.append("interrupted")

    post(pair.rings[waiting], b"")
    with Child(wait) as child:
        for _ in range(3):
            assert has_slept(child.pid)
            os.kill(child.pid, signal.SIGINT)
        assert has_slept(child.pid)
        post(pair.rings[1 - waiting], b"")
        assert child.result(SOON) == (["interrupted"] * 3, True)


def test_handled_signal_does_not_end_a_wait(pair: Group, waiting: int) -> None:
    def wait() -> tuple[list[int], bool]:
        seen: list[int] = []
        signal.signal(signal.SIGUSR1, lambda number, _: seen.append(number))
        return seen, pair.rings[waiting].wait(POSTED, 0, LONG, True)

    post(pair.rings[waiting], b"")
    with Child(wait) as child:
        assert has_slept(child.pid)
        os.kill(child.pid, signal.SIGUSR1)
        assert has_slept(child.pid)
        post(pair.rings[1 - waiting], b"")
        assert child.result(SOON) == ([signal.SIGUSR1], True)


def finish(pair: Group, seconds: float) -> Any:
    return pair.rings[0].finish(0, (b"", b""), NOTHING, 0, 0, 0, 0, seconds)


@pytest.fixture(params=["compiled", "python"])
def finishing(request: pytest.FixtureRequest) -> Group:
    """Return a pair whose rank 0 is compiled and has posted."""
    forms = ("compiled", request.param)
    if reason := missing(forms):
        pytest.skip(reason)
    pair = Group(forms, 2, spins=1)
    post(pair.rings[0], b"")
    return pair


def test_finish_sleeps_until_all_have_posted(finishing: Group) -> None:
    with Child(partial(finish, finishing, LONG)) as child:
        assert has_slept(child.pid)
        post(finishing.rings[1], b"")
        assert child.result(SOON) == DONE


def test_finish_ends_with_the_group(finishing: Group) -> None:
    with Child(partial(finish, finishing, LONG)) as child:
        assert has_slept(child.pid)
        finishing.rings[1].end()
        assert child.result(SOON) == WAITING


def test_finish_ends_at_its_deadline(finishing: Group) -> None:
    assert finish(finishing, 0.05) == WAITING


def test_signal_interrupts_finish(finishing: Group) -> None:
    def interrupted() -> str:
        try:
            return f"finish returned {finish(finishing, LONG)}"
        except KeyboardInterrupt:
            return f"KeyboardInterrupt, {finishing.counters(RELEASED)}"

    with Child(interrupted) as child:
        assert has_slept(child.pid)
        os.kill(child.pid, signal.SIGINT)
        assert child.result(SOON) == "KeyboardInterrupt, [0, 0]"
