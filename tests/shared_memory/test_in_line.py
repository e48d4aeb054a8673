"""Calls that are posted and finished in one step: what a signal's handler may interrupt, and where."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import collshim.torch.distributed as shim
from tests.engine.worlds import on_ranks, world

pytestmark = pytest.mark.processes


class Interrupt(BaseException):
    """What a signal's handler raises."""


class _Ring:
    """A ring after one of whose methods a signal's handler raises: its answer is lost."""

    def __init__(self, ring: Any) -> None:
        self._ring = ring
        self.interrupts = ""

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._ring, name)
        if name != self.interrupts:
            return method

        def interrupted(*arguments: Any) -> Any:
            self.interrupts = ""
            method(*arguments)
            raise Interrupt

        return interrupted


def loses_an_answer(method: str, count: int) -> list[float]:
    """Return what this rank gets in calls before, during and after the one whose answer is lost on rank 0."""
    shim.init_process_group("gloo")
    transport: Any = world()._transport
    transport.shared.ring = ring = _Ring(transport.shared.ring)
    found = list[float]()
    for number in range(6):
        x = torch.full((count,), number + 10.0 * shim.get_rank())
        if number == 3 and shim.get_rank() == 0:
            ring.interrupts = method
            with pytest.raises(Interrupt):
                shim.all_reduce(x)
            assert not ring.interrupts
        else:
            shim.all_reduce(x)
            found.append(x[-1].item())
    return found


@pytest.mark.parametrize("count", [4, 100_000], ids=["small", "large"])
@pytest.mark.parametrize("method", ["post", "finish"])
def test_call_whose_answer_is_lost_counts_for_the_others(method: str, count: int) -> None:
    first, second = on_ranks(loses_an_answer, 2, "processes", method, count, within=60)
    assert second == [10.0, 12.0, 14.0, 16.0, 18.0, 20.0]
    assert first == [10.0, 12.0, 14.0, 18.0, 20.0]
