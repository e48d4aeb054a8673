"""Calls are ranges of torch's profiler while one is active, and only then."""

from __future__ import annotations

from weakref import ref

import pytest
import torch
from torch.profiler import profile

from collshim.profiling import in_range
from collshim.work import Work
from tests.engine.worlds import on_ranks, world

NAMES = ["collshim::all_reduce", "collshim::all_reduce.wait"]


def profiled() -> tuple[list[str], list[float]]:
    comm, x = world(), torch.ones(2)
    comm.all_reduce(x, out=x).wait()
    with profile() as profiler:
        comm.all_reduce(x, out=x).wait()
    comm.all_reduce(x, out=x).wait()
    return [event.name for event in profiler.events() or [] if event.name.startswith("collshim")], x.tolist()


@pytest.mark.parametrize("transport", ["processes", "gloo", "unchecked"])
def test_call_and_its_wait_are_ranges(transport: str) -> None:
    assert on_ranks(profiled, 2, transport) == [(NAMES, [8.0, 8.0])] * 2


def test_call_that_is_over_at_once_is_one_range() -> None:
    assert profiled() == (NAMES[:1], [1.0, 1.0])


def test_work_that_was_started_in_a_range_can_be_dropped() -> None:
    dropped = ref(in_range("range", Work[None]))
    assert dropped() is None
