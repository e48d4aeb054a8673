"""The poller's own thread leaves the sockets to a thread that waits, and seldom looks whether that still waits."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from collshim.transports.sockets import poller


@pytest.fixture
def sleeps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds for which the poller's thread sleeps, as it does so."""
    seconds = list[float]()

    class Time:
        monotonic = time.monotonic

        @staticmethod
        def sleep(length: float) -> None:
            seconds.append(length)
            time.sleep(length)

    clock: Any = Time
    monkeypatch.setattr(poller, "time", clock)
    return seconds


@pytest.fixture
def polling(sleeps: list[float]) -> Iterator[poller.Poller]:
    polling = poller.Poller()
    yield polling
    polling.close()


def test_long_wait_is_seldom_interrupted(polling: poller.Poller, sleeps: list[float]) -> None:
    near, far = socket.socketpair()
    left = list(range(8))

    def over() -> bool:
        if left:  # while this thread waits, the poller's thread handles an event, and then lets this one do so
            far.send(bytes([left.pop()]))
        return False

    def handle(_events: int) -> None:
        near.recv(1)

    with near, far:
        polling.add(near, handle)
        assert polling.wait(over, 0.1) is False
        sleeps.clear()
        assert polling.wait(lambda: False, 0.8) is False
        polling.remove(near)
    assert 1 < len(sleeps) < 150
    assert max(sleeps) <= 0.02
