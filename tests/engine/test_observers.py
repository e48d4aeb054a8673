"""Observers see each posted call before it starts, and its work afterwards."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import collshim
from collshim.calls.plan import Plan
from tests.engine.worlds import TRANSPORTS, on_ranks

pytestmark = pytest.mark.threads


class Recorder:
    """Records the collectives that it sees, with the line and whether the work was complete."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def before(self, plan: Plan, inputs: Any, outputs: Any, caller: Any) -> Plan:
        self.seen.append(f"before {plan.call.op} at {caller.site().partition(':')[0]}")
        return plan

    def after(self, work: Any, plan: Plan, caller: Any, group: str) -> None:
        self.seen.append(f"after {work.call.op if work.call is not None else 'nothing'}")


class RefusalError(Exception):
    """Raised by an observer."""


class Refusing(Recorder):
    """Refuses the first call."""

    def before(self, plan: Plan, inputs: Any, outputs: Any, caller: Any) -> Plan:
        if not self.seen:
            self.seen.append("refused")
            raise RefusalError
        return plan


def observed() -> list[str]:
    comm = collshim.current().communicator
    recorder, x = Recorder(), torch.ones(2)
    comm.observe(recorder)
    for _ in range(2):
        comm.all_reduce(x, out=x).wait()
    comm.barrier().wait()
    return recorder.seen


def refused() -> tuple[bool, list[float]]:
    comm = collshim.current().communicator
    comm.observe(Refusing())
    with pytest.raises(RefusalError):
        comm.all_reduce(torch.ones(2))
    return True, comm.all_reduce(torch.ones(2)).wait().tolist()


def searched() -> list[str]:
    """Reduce without NaN, and again with NaN on rank 1."""
    comm = collshim.current().communicator
    x, texts = torch.ones(2), []
    with collshim.options(find_nan=True):
        texts.append(str(comm.all_reduce(x).wait().tolist()))
        x[0] = torch.nan if comm.rank == 1 else 1
        with pytest.raises(collshim.NotANumberError) as caught:
            comm.all_reduce(x).wait()
        texts.append(str(caught.value))
    return texts


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_observer_sees_every_call(transport: str) -> None:
    place = "at test_observers.py"
    pair = [f"before all_reduce {place}", "after all_reduce"]
    assert on_ranks(observed, 2, transport) == [[*pair, *pair, f"before barrier {place}", "after barrier"]] * 2


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_observer_can_refuse_a_call(transport: str) -> None:
    assert on_ranks(refused, 2, transport) == [(True, [2.0, 2.0])] * 2


@pytest.mark.parametrize("transport", ["threads", "processes"])
def test_repeated_call_is_searched_for_nan(transport: str) -> None:
    for values, text in on_ranks(searched, 2, transport):
        assert values == "[2.0, 2.0]"
        assert "rank 1 has NaN: 1 of 2 elements of its input, the first at (0,)" in text
