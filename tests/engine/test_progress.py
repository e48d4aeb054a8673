"""The progress thread: it advances objects, seldom if nothing has moved for long."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from collshim.transports.processes import progress
from collshim.transports.processes.progress import ProgressThread

LONG = 30.0
QUIET = 0.1


class Thing:
    """An object that always has more to do, and counts its steps."""

    def __init__(self) -> None:
        self.steps = 0

    def step(self) -> bool:
        self.steps += 1
        return True


def watched(thing: Thing, moved: Callable[[Thing], float]) -> ProgressThread[Thing]:
    """Return a thread that advances the thing every millisecond, or less often if it has not moved for long."""
    thread = ProgressThread("test-progress", 0.001, Thing.step, set[Thing](), moved=moved)
    thread.watch(thing)
    return thread


def goes_on(thing: Thing, seconds: float) -> bool:
    """Return whether the thing takes another step within that many seconds."""
    limit, steps = time.monotonic() + seconds, thing.steps
    while thing.steps == steps and time.monotonic() < limit:
        time.sleep(0.001)
    return thing.steps > steps


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the thread rest without end if nothing has moved for ``QUIET`` seconds."""
    monkeypatch.setattr(progress, "pause", lambda quiet, least, _: 600.0 if quiet > QUIET else least)


def test_thing_that_has_not_moved_is_advanced_seldom() -> None:
    thing = Thing()
    watched(thing, lambda _: 0.0)
    time.sleep(0.6)
    assert 1 < thing.steps < 200


@pytest.mark.usefixtures("rests")
def test_thing_that_moves_is_advanced_often() -> None:
    thing = Thing()
    watched(thing, lambda _: time.monotonic() + LONG)  # this thread might not run for QUIET seconds
    time.sleep(2 * QUIET)
    assert all(goes_on(thing, LONG) for _ in range(20))


@pytest.mark.usefixtures("rests")
def test_thing_that_is_watched_again_is_advanced_soon() -> None:
    thing = Thing()
    thread = watched(thing, lambda _: 0.0)
    while goes_on(thing, 3 * QUIET):
        pass
    thread.watch(thing)
    assert goes_on(thing, LONG)
