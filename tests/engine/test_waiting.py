"""Waits in slices: a call that ends just as a slice does has not failed."""

from __future__ import annotations

import random
import time
from datetime import timedelta
from typing import Any

import pytest
import torch

from collshim.transports.processes import exchange
from collshim.transports.processes.backend import is_over
from tests.engine.worlds import on_ranks, world

CALLS = 400


class _EndsWithTheSlice:
    """torch's work that ends between the expiry of a wait and the check for it."""

    def __init__(self, failure: str = "") -> None:
        self.failure = failure
        self.over = False

    def wait(self, timeout: timedelta | None = None) -> bool:
        if self.over and not self.failure:
            return True
        text = self.failure if self.over else "Operation timed out!"
        self.over = True
        raise RuntimeError(text)

    def is_completed(self) -> bool:
        return self.over


def test_work_ending_with_a_slice_is_over() -> None:
    assert is_over(_EndsWithTheSlice(), 0.1)


def test_work_failing_with_a_slice_raises_its_failure() -> None:
    with pytest.raises(RuntimeError, match="the connection broke"):
        is_over(_EndsWithTheSlice("the connection broke"), 0.1)


def _arrivals_at_the_edge() -> Any:
    """Rank 1 arrives when the first slice of rank 0's wait ends, within its own jitter."""
    edge = 0.004
    exchange._FIRST_SLICE, exchange.Exchange._first_slice = timedelta(seconds=edge), edge
    comm, drawn = world(), random.Random(5)
    tensor = torch.ones(4)
    for _ in range(CALLS):
        begin, delay = time.monotonic(), edge + drawn.uniform(-0.0005, 0.0005)
        while comm.rank == 1 and time.monotonic() < begin + delay:
            pass
        tensor = comm.all_reduce(tensor).wait() / comm.size
    return tensor.tolist()


def test_rank_arriving_with_a_slice_finds_the_world(transport: str) -> None:
    assert on_ranks(_arrivals_at_the_edge, 2, transport) == [[1.0] * 4] * 2
