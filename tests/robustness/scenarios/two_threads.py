"""Ranks whose threads call collectives, and are switched as often as Python can."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import torch

import collshim
from collshim import Communicator
from collshim.world import use
from tests.engine.worlds import Outcome, attempt, fresh, world

CALLS = 40
PATIENCE = 60.0
OFTEN = 1e-6
"""Seconds between two switches of threads."""


def _together(*calls: Callable[[], Any]) -> list[Any]:
    """Return the result of each call, each in a thread that acts as this rank."""
    world, found = collshim.current(), [Outcome()] * len(calls)

    def run(place: int) -> None:
        with use(world):
            found[place] = attempt(calls[place])

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(calls))]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(OFTEN)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
    finally:
        sys.setswitchinterval(max(interval, 0.005))  # another rank may have set it before
    return ["it did not return" if thread.is_alive() else seen for thread, seen in zip(threads, found, strict=True)]


def _totals(comm: Communicator, length: int) -> set[str]:
    """Return the distinct outcomes of many calls."""
    wanted = [float(sum(range(1, comm.size + 1)))] * length
    seen = [attempt(lambda: comm.all_reduce(torch.full((length,), comm.rank + 1.0)).wait()) for _ in range(CALLS)]
    return {_word(one, wanted) for one in seen}


def _word(seen: Outcome, wanted: list[float]) -> str:
    if seen.raised:
        return "CommunicationError" if "CommunicationError" in seen.raised else f"{seen.raised[0]}: {seen.text}"
    return "right" if seen.value.tolist() == wanted else "wrong"


def a_group_each() -> list[Any]:
    groups = [fresh(), fresh()]
    return _together(
        *(lambda group=group, length=length: _totals(group, length) for length, group in enumerate(groups, 3))
    )


def _in_flight(group: Communicator, place: int) -> set[str]:
    """Make several calls of each kind at once, and make and drop groups."""
    size, peer, found = group.size, (group.rank + 1) % group.size, set[str]()
    part = group
    for number, length in enumerate((4, 2000) * (CALLS // 8)):
        x = torch.full((length,), group.rank + 1.0)
        works = [group.all_reduce(x) for _ in range(3)]
        sent, text = group.send(x, peer, place), group.all_gather_object((place, group.rank))
        part = group.subgroup(range(size)) or group if number % 4 == 0 else group
        gathered, came = part.all_gather(x), group.recv((group.rank - 1) % size, like=x, tag=place)
        del part
        is_right = came.wait()[-1] == (group.rank - 1) % size + 1
        is_right &= all(work.wait()[-1] == size * (size + 1) / 2 for work in works)
        is_right &= text.wait() == [(place, rank) for rank in range(size)]
        is_right &= gathered.wait()[:, -1].tolist() == [rank + 1.0 for rank in range(size)]
        sent.wait()
        found.add("right" if is_right else "wrong")
    return found


def a_group_each_in_flight() -> list[Any]:
    groups = [fresh() for _ in range(4)]
    return _together(*(lambda group=group, place=place: _in_flight(group, place) for place, group in enumerate(groups)))


def one_group() -> list[Any]:
    """The threads of a rank race, so that the ranks' orders sometimes differ."""
    comm = world()
    return _together(lambda: _totals(comm, 3), lambda: _totals(comm, 5))


def handed_over() -> list[Any]:
    """One thread posts, another waits; then the first waits for the other's post."""
    comm = world()
    work = comm.all_reduce(torch.ones(3))
    waited = _together(lambda: work.wait().tolist())[0].value
    later = _together(lambda: comm.all_reduce(torch.ones(2)))[0].value
    return [waited, later.wait().tolist()]
