"""Calls that are posted and finished in one step: what a signal's handler may interrupt."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

import collshim.torch.distributed as shim
from tests.engine.worlds import on_ranks

pytestmark = pytest.mark.processes


class Interrupt(BaseException):
    """What a signal's handler raises."""


def _raise(number: int, frame: object) -> None:
    raise Interrupt


def interrupts_a_wait(kind: str, count: int) -> list[float]:
    """Return what this rank gets in calls before, during and after the one that rank 0's handler interrupts."""
    shim.init_process_group("gloo")
    rank, found = shim.get_rank(), list[float]()
    outputs = [torch.empty(count) for _ in range(2)]
    forms: dict[str, Callable[[Any], Any]] = {
        "tensor": shim.all_reduce,
        "list": lambda x: shim.all_gather(outputs, x),
    }
    signal.signal(signal.SIGALRM, _raise)
    for number in range(8):
        x = torch.full((count,), number + 10.0 * rank)
        if number == 4 and rank == 0:
            signal.setitimer(signal.ITIMER_REAL, 0.03)
            with pytest.raises(Interrupt):
                forms[kind](x)
            continue
        if number == 4:
            time.sleep(0.1)
        forms[kind](x)
        found.append((x if kind == "tensor" else outputs[1])[-1].item())
    return found


@pytest.mark.parametrize("count", [4, 100_000], ids=["small", "large"])
@pytest.mark.parametrize("kind", ["tensor", "list"])
def test_call_whose_wait_is_interrupted_counts_for_the_others(kind: str, count: int) -> None:
    first, second = on_ranks(interrupts_a_wait, 2, "processes", kind, count, within=60)
    values = [10.0 + (2 if kind == "tensor" else 1) * number for number in range(8)]
    assert second == values
    assert first == values[:4] + values[5:]
