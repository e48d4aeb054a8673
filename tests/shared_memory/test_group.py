"""One rank's end of the memory that a group shares."""

from __future__ import annotations

import os
import time

import pytest

from collshim.transports.shared_memory import core, segment
from collshim.transports.shared_memory.group import SharedMemory, segment_bytes_for
from collshim.transports.shared_memory.layout import ALIVE, CLOSED, POSTED

pytestmark = pytest.mark.skipif(core.Ring is None, reason=f"shared memory is not used here: {core.description()}")


@pytest.fixture
def shared() -> SharedMemory:
    file, mapped = segment.make(segment_bytes_for(2), bytes(segment.TOKEN_BYTES))
    os.close(file)
    return SharedMemory(mapped, 0, 2, [os.getpid(), os.getpid()], reads_far=False)


def test_rank_that_closes_posts_no_more(shared: SharedMemory) -> None:
    shared.close()
    assert shared.ring.state(0) == CLOSED


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")  # it calls nothing but this
def test_forked_process_does_not_close_the_rank(shared: SharedMemory) -> None:
    child = os.fork()
    if child == 0:
        shared.end()
        shared.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert shared.ring.state(0) == ALIVE


def test_wait_for_a_rank_polls_only_at_first(shared: SharedMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    ring, polled = shared.ring, list[bool]()

    class Ring:
        def wait(self, which: int, number: int, seconds: float, polls: bool) -> bool:
            polled.append(polls)
            return bool(ring.wait(which, number, seconds, polls))

        def __getattr__(self, name: str) -> object:
            return getattr(ring, name)

    monkeypatch.setattr(shared, "ring", Ring())
    assert shared.await_counters(POSTED, 0, time.monotonic() + 0.1) is False
    assert polled[0] is True
    assert set(polled[1:]) == {False}
