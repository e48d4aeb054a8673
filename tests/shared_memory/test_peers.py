"""The other ranks' processes: one that has ended is noticed, and one that lives is not."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from collshim.transports.shared_memory.peers import Peers
from tests.shared_memory.children import Child

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="the system cannot watch processes"),
]


@pytest.fixture
def others() -> Iterator[list[Child]]:
    """Return two processes that live until the end of the test."""
    with Child(partial(time.sleep, 600)) as one, Child(partial(time.sleep, 600)) as other:
        yield [one, other]


@pytest.fixture
def peers(others: list[Child]) -> Peers:
    """Return the peers of rank 1 of three, which is this process."""
    return Peers([others[0].pid, os.getpid(), others[1].pid], 1)


def watched_processes() -> int:
    """Return how many processes this one watches."""
    files = [f"/proc/self/fd/{file}" for file in os.listdir("/proc/self/fd")]
    return sum("pidfd" in os.readlink(file) for file in files if os.path.islink(file))


def ended_of(peers: Peers) -> set[int]:
    """Return the ranks whose processes have ended."""
    return {rank for rank in range(len(peers.processes)) if peers.has_ended(rank)}


def is_soon(condition: Callable[[], bool]) -> bool:
    """Wait until a condition holds; return whether it does."""
    limit = time.monotonic() + 30
    while not condition() and time.monotonic() < limit:
        time.sleep(0.005)
    return condition()


def test_living_processes_have_not_ended(peers: Peers) -> None:
    assert [ended_of(peers) for _ in range(3)] == [set()] * 3


def test_ended_process_is_noticed(peers: Peers, others: list[Child]) -> None:
    assert ended_of(peers) == set()
    others[1].kill()
    assert [ended_of(peers) for _ in range(3)] == [{2}] * 3
    others[0].kill()
    assert ended_of(peers) == {0, 2}


def test_process_that_ended_before_the_first_question_is_noticed(peers: Peers, others: list[Child]) -> None:
    others[0].kill()
    assert ended_of(peers) == {0}


def test_ended_process_that_nobody_has_waited_for_is_noticed(peers: Peers, others: list[Child]) -> None:
    os.kill(others[0].pid, signal.SIGTERM)
    assert is_soon(lambda: ended_of(peers) == {0})


def test_own_process_never_counts_as_ended() -> None:
    assert ended_of(Peers([os.getpid(), os.getpid()], 1)) == set()


@pytest.mark.parametrize("ended", [0, 1, 2])
def test_no_descriptor_is_kept(others: list[Child], ended: int) -> None:
    before = watched_processes()
    peers = Peers([os.getpid(), *(child.pid for child in others)], 0)
    for child in others[:ended]:
        child.kill()
    assert len(ended_of(peers)) == ended
    assert watched_processes() == before
