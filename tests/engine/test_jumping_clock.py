"""The clock that jumps to the next deadline as soon as all ranks are blocked."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

import collshim
from collshim import CommunicationError, Communicator, PeerError
from collshim.testing import sleep

pytestmark = pytest.mark.threads
HOUR = 3600.0
SOON = 20.0
"""Seconds within which an hour has passed, on a busy machine."""


def on_clock(size: int) -> pytest.MarkDecorator:
    return pytest.mark.ranks(size, clock="jumping", timeout=4 * SOON, default_group=False)


def told(call: Callable[[], Any]) -> str:
    """Return the class of the error that a call raises, or ""."""
    try:
        call()
    except CommunicationError as error:
        return type(error).__name__
    return ""


def run(scenario: Callable[[Communicator], Any], size: int = 2) -> list[Any]:
    with collshim.options(clock="jumping"):
        return collshim.launch(lambda: scenario(collshim.current().communicator), size, timeout=4 * SOON)


def test_deadlock_ends_at_once() -> None:
    began = time.monotonic()
    found = run(lambda comm: told(lambda: comm.recv(1 - comm.rank, like=torch.zeros(1)).wait(HOUR)))
    assert "DeadlineError" in found
    assert time.monotonic() - began < SOON


def test_every_rank_of_a_ring_of_waits_fails() -> None:
    def waits(comm: Communicator) -> str:
        return told(lambda: comm.recv((comm.rank + 1) % 3, like=torch.zeros(1)).wait(HOUR * (comm.rank + 1)))

    errors = run(waits, 3)
    assert "DeadlineError" in errors
    assert all(errors)


@on_clock(2)
def test_text_names_the_seconds_that_were_asked_for(comm: Communicator) -> None:
    with pytest.raises(CommunicationError, match=r"\(within 3600 s\)"):
        comm.recv(1 - comm.rank, like=torch.zeros(1)).wait(HOUR)


@on_clock(2)
def test_clock_does_not_jump_past_a_rank_that_computes(comm: Communicator) -> None:
    if comm.rank:
        time.sleep(0.5)
    assert float(comm.all_reduce(torch.ones(1)).wait(HOUR)) == 2.0


def test_sleep_by_the_clock_takes_no_time() -> None:
    def late(comm: Communicator) -> tuple[str, float]:
        if comm.rank:
            sleep(2 * HOUR)
        return told(lambda: comm.barrier().wait(HOUR)), float(comm.rank)

    began = time.monotonic()
    assert run(late, 3)[0] == ("DeadlineError", 0.0)
    assert time.monotonic() - began < SOON


@on_clock(3)
def test_others_wait_for_a_sleeping_rank_within_their_deadline(comm: Communicator) -> None:
    sleep(HOUR * comm.rank)
    assert float(comm.all_reduce(torch.ones(1)).wait(10 * HOUR)) == 3.0


def test_last_ranks_may_sleep_after_the_others_have_left() -> None:
    began = time.monotonic()
    run(lambda comm: sleep(HOUR) if comm.rank else None, 3)
    assert time.monotonic() - began < SOON


def test_sleep_without_the_clock_is_the_systems() -> None:
    began = time.monotonic()
    sleep(0.05)
    assert collshim.launch(lambda: sleep(0.05), 2) == [None, None]
    assert time.monotonic() - began >= 0.1


def test_rank_that_has_left_is_a_peer_error() -> None:
    found = run(lambda comm: "" if comm.rank else told(lambda: comm.barrier().wait(HOUR)))
    assert found == [PeerError.__name__, ""]


@on_clock(4)
def test_calls_that_succeed_are_right(comm: Communicator) -> None:
    for n in range(50):
        assert float(comm.all_reduce(torch.tensor(float(n + comm.rank))).wait(HOUR)) == 4.0 * n + 6.0


@on_clock(3)
def test_large_calls_are_shared_and_right(comm: Communicator) -> None:
    assert bool((comm.all_reduce(torch.ones(1 << 20)).wait(HOUR) == 3.0).all())


def test_wrong_clock_is_refused() -> None:
    with pytest.raises(collshim.ArgumentValueError, match="option clock is 'fast', should be one of"):
        collshim.options(clock="fast").__enter__()
