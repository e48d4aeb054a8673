"""Sends and receives on two ranks whose peer does not do its part."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from tests.engine.worlds import Outcome, attempt, world

LARGE = 1_000_000
"""Elements of a message through gloo."""


def told(call: Callable[[], Any]) -> str:
    """Return the class of the error of ``call``, or "nothing"."""
    found = attempt(call)
    return found.raised[0] if found.raised else "nothing"


def sends_to_one_that_returns() -> Any:
    comm = world()
    return None if comm.rank else attempt(lambda: comm.send(torch.ones(LARGE), 1).wait())


def polls_one_that_returns() -> Any:
    comm = world()
    if comm.rank:
        return None
    received = comm.recv(1, like=torch.ones(3))
    limit = time.monotonic() + 10
    while not received.done():
        assert time.monotonic() < limit
        time.sleep(0.01)
    return attempt(received.wait)


def receives_from_one_that_returned() -> Any:
    comm = world()
    if comm.rank == 1:
        comm.send(torch.ones(LARGE), 0)
        return None
    time.sleep(0.7)
    return int(comm.recv(1, like=torch.ones(LARGE)).wait().sum())


def sends_a_small_one_too_late() -> Any:
    return _sends_too_late(3)


def sends_a_large_one_too_late() -> Any:
    return _sends_too_late(LARGE)


def _sends_too_late(length: int) -> Outcome:
    comm = world()
    if comm.rank == 0:
        return attempt(lambda: comm.recv(1, like=torch.ones(3)).wait(0.5))
    time.sleep(1.5)
    return attempt(lambda: comm.send(torch.ones(length), 0).wait())


def has_time(seconds: float) -> Any:
    comm = world()
    comm.timeout = seconds
    if comm.rank == 0:
        time.sleep(0.4)
        return comm.send(torch.ones(LARGE), 1).wait()
    return int(comm.recv(0, like=torch.ones(LARGE)).wait().sum())


def makes_a_group_in_two_orders() -> Any:
    return attempt(lambda: world().subgroup([0, 1] if world().rank == 0 else [1, 0]))
