"""Communicators that a program drops without closing them: nothing of them is kept, and their calls complete."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch

from collshim import Communicator
from collshim import world as worlds
from tests.engine.worlds import TRANSPORTS, on_ranks, world
from tests.robustness.scenarios.resources import held

LONGEST_WAIT = 20.0
GROUPS = 12
"""The number of groups made; a few more or less may be pending."""

SPARE = 4

IN_FLIGHT: dict[str, Callable[[Communicator], Any]] = {
    "nothing": lambda group: None,
    "a small call": lambda group: group.all_reduce(torch.ones(4)),
    "a larger call": lambda group: group.all_reduce(torch.ones(5000)),
    "a barrier": lambda group: group.barrier(),
    "a freed call": lambda group: group.all_reduce(torch.ones(4)).free(),
    "a gradient": lambda group: group.all_reduce(torch.ones(3, requires_grad=True)),
    "objects": lambda group: group.all_gather_object("text"),
    "several arrays": lambda group: group.all_reduce_coalesced([torch.ones(3), torch.ones(4)]),
    "unequal parts": lambda group: group.all_gather_ragged(torch.ones(group.rank + 1)),
    "a receive": lambda group: group.recv(1 - group.rank, like=torch.ones(3)),
    "a receive from any": lambda group: group.recv(None, like=torch.ones(3)),
    "a small send": lambda group: group.send(torch.ones(3), 1 - group.rank),
    "a larger send": lambda group: group.send(torch.ones(30_000), 1 - group.rank),
    "a call of one rank": lambda group: group.all_reduce(torch.ones(3)) if group.rank else None,
}


def kept() -> dict[str, int]:
    """Return what the world keeps of groups that are gone."""
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
    while any(kept()[name] > count + 2 * SPARE for name, count in before.items()) and time.monotonic() < limit:
        gc.collect()
        time.sleep(0.05)
    after = kept()
    comm.barrier().wait()
    return before, after


def test_dropped_communicators_leave_nothing(transport: str) -> None:
    for before, after in on_ranks(drops, 2, transport, 24):
        assert {name: count for name, count in after.items() if count > before[name] + 2 * SPARE} == {}


def drops_in_flight() -> dict[str, list[int]]:
    """Return the additional descriptors, threads and groups, by pending call."""
    comm, found = world(), dict[str, list[int]]()
    for name, start in IN_FLIGHT.items():
        comm.barrier().wait()
        before = [*held(), *kept().values()]
        for _ in range(GROUPS):
            group = comm.subgroup([0, 1])
            assert group is not None
            start(group)
            del group
        comm.barrier().wait()
        found[name] = _settled(before)
    return found


def _settled(before: list[int]) -> list[int]:
    limit = time.monotonic() + LONGEST_WAIT
    while True:
        more = [now - then for now, then in zip([*held(), *kept().values()], before, strict=True)]
        if max(more) <= SPARE or time.monotonic() > limit:
            return more
        time.sleep(0.05)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_groups_dropped_with_pending_calls_leave_nothing(transport: str) -> None:
    for found in on_ranks(drops_in_flight, 2, transport, within=100):
        assert {name: more for name, more in found.items() if max(more) > SPARE} == {}


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


def test_pending_calls_of_a_dropped_communicator_complete(transport: str) -> None:
    assert on_ranks(posts_and_drops, 2, transport) == [[1.0, 3.0, 5.0]] * 2


def closes_while_another_makes() -> Any:
    """Return what is kept after rank 0 was told that a group is not made yet, and asks again after rank 1 closed it."""
    comm, answers = world(), [False]
    transport: Any = type(comm._transport)
    is_made, before = transport._is_made, kept()

    def is_made_late(self: Any) -> bool:
        if not answers:
            time.sleep(0.5)
        return bool(answers.pop() if answers else is_made(self))

    part = comm.subgroup([0, 1])
    assert part is not None
    if comm.rank == 0:
        transport._is_made = is_made_late
    part.close()
    comm.barrier().wait()
    ending = [thread for thread in threading.enumerate() if thread.name == "collshim-ending"]
    for thread in ending:
        thread.join(LONGEST_WAIT)
    comm.barrier().wait()
    time.sleep(0.2)  # the message to the store is on its way
    after = kept()
    comm.barrier().wait()
    return len(ending), [thread.is_alive() for thread in ending], after["keys"] > before["keys"]


@pytest.mark.parametrize("transport", TRANSPORTS[1:])
def test_group_closed_while_being_made_leaves_no_key(transport: str) -> None:
    first, second = on_ranks(closes_while_another_makes, 2, transport, wait=20.0)
    assert first[0] == 1 or "gloo" not in transport  # gloo still needs the rank: a thread waits to end the group
    for _, alive, has_more_keys in (first, second):
        assert (any(alive), has_more_keys) == (False, False)
