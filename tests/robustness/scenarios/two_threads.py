"""Ranks of which two threads call collectives."""

from __future__ import annotations

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


def _together(*calls: Callable[[], Any]) -> list[Any]:
    """What each returned, each in a thread of its own that is this rank too."""
    world, found = collshim.current(), [Outcome()] * len(calls)

    def run(place: int) -> None:
        with use(world):
            found[place] = attempt(calls[place])

    threads = [threading.Thread(target=run, args=(place,), daemon=True) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    return ["it did not return" if thread.is_alive() else seen for thread, seen in zip(threads, found, strict=True)]


def _totals(comm: Communicator, length: int) -> set[str]:
    """What each of many calls gave."""
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


def one_group() -> list[Any]:
    """The threads of a rank race, so that the ranks' orders differ, now and then."""
    comm = world()
    return _together(lambda: _totals(comm, 3), lambda: _totals(comm, 5))


def handed_over() -> list[Any]:
    """One thread posts, another waits; then the first waits for what the other posted."""
    comm = world()
    work = comm.all_reduce(torch.ones(3))
    waited = _together(lambda: work.wait().tolist())[0].value
    later = _together(lambda: comm.all_reduce(torch.ones(2)))[0].value
    return [waited, later.wait().tolist()]
