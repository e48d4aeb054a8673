"""Events in torch's profilers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import collshim.torch.distributed as dist
from tests.adapters.conftest import each_of

pytestmark = pytest.mark.skipif(
    not hasattr(torch.distributed, "record_comm"), reason="the events are torch 2.13's; 2.6's profiler records none"
)


def _profiled(call: Callable[[], Any]) -> list[tuple[str, bool, Any]]:
    profiler: Any = torch.autograd.profiler.profile(record_shapes=True)
    with profiler:
        call()
    events = profiler.function_events
    return [
        (event.name, event.is_async, event.input_shapes) for event in events if ":" in event.name.replace("aten::", "")
    ]


@each_of(1, gives=[[("gloo:all_reduce", True, [[2]]), ("gloo:all_reduce", True, [[3]])]])
def test_event_lasts_until_the_work_is_waited_for() -> Any:
    def call() -> None:
        works = [dist.all_reduce(torch.zeros(size), async_op=True) for size in (2, 3)]
        for work in works:
            assert work is not None
            work.wait()

    return sorted(_profiled(call))


@each_of(1, gives=[[("gloo:recv", True, [[2, 2]]), ("gloo:send", True, [[2, 2]])]])
def test_complex_is_shown_as_pairs_and_batches_singly() -> Any:
    def call() -> None:
        ops = [
            dist.P2POp(dist.isend, torch.zeros(2, dtype=torch.complex64), 0),
            dist.P2POp(dist.irecv, torch.zeros(2, dtype=torch.complex64), 0),
        ]
        for work in dist.batch_isend_irecv(ops):
            work.wait()

    return sorted(_profiled(call))


@each_of(1, gives=[[("step:one", True, [[1]])]])
def test_record_comm_names_the_event() -> Any:
    with dist.record_comm("step:one"):
        return _profiled(lambda: dist.all_reduce(torch.zeros(1)))


@each_of(1, gives=[["gloo:all_gather"]])
def test_failed_call_ends_its_event() -> Any:
    def call() -> None:
        with pytest.raises(RuntimeError):
            dist.all_gather([torch.zeros(3)], torch.zeros(2))

    return [name for name, *_ in _profiled(call)]
