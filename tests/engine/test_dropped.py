"""Communicators that a program lets go of without closing them: nothing of them is kept, and their calls complete."""

from __future__ import annotations

import gc
import time
from typing import Any

import pytest
import torch

from collshim import world as worlds
from tests.engine.worlds import on_ranks, world

TRANSPORTS = ("threads", "processes", "unchecked")
LONGEST_WAIT = 5.0


def kept() -> dict[str, int]:
    """What the world keeps of groups that are gone."""
    transport: Any = world()._transport
    shared = worlds._Process.shared
    if shared is None:
        return {"groups": len(transport.group.world._registry)}
    return {"inboxes": len(shared.connections._inboxes), "keys": shared.store.num_keys()}


def drops(number: int) -> Any:
    comm, before = world(), kept()
    for index in range(number):
        part = comm.subgroup([0, 1])
        assert part is not None
        if index % 2:
            part.send(torch.ones(3), 1 - comm.rank).wait()
            part.recv(1 - comm.rank, like=torch.ones(3)).wait()
        total = part.all_reduce(torch.ones(2)).wait()
        assert total.tolist() == [2.0, 2.0]
        del part
    comm.barrier().wait()
    limit = time.monotonic() + LONGEST_WAIT
    while any(kept()[name] > count + 4 for name, count in before.items()) and time.monotonic() < limit:
        gc.collect()
        time.sleep(0.05)
    after = kept()
    comm.barrier().wait()
    return before, after


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_nothing_of_dropped_communicators_is_kept(transport: str) -> None:
    for before, after in on_ranks(drops, 2, transport, 24):
        assert {name: count for name, count in after.items() if count > before[name] + 4} == {}


def posts_and_drops() -> Any:
    comm = world()
    if comm.rank == 1:
        time.sleep(0.3)
    part = comm.subgroup([0, 1])
    assert part is not None
    if comm.rank == 1:
        time.sleep(0.3)
    works = [part.all_reduce(torch.full((2000,), float(comm.rank + index))) for index in range(3)]
    del part
    gc.collect()
    return [work.wait()[0].item() for work in works]


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_calls_in_progress_complete_though_their_communicator_is_dropped(transport: str) -> None:
    assert on_ranks(posts_and_drops, 2, transport) == [[1.0, 3.0, 5.0]] * 2
