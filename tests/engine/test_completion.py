"""A call whose data has moved is done, though nobody waits for it: every collective, on every transport."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

from collshim import Communicator
from tests.engine.worlds import compare, on_ranks, world

LENGTH = 5000
"""Elements of data that follows the ranks' fingerprints."""

LONGEST_WAIT = 5.0

Start = Callable[[Communicator, torch.Tensor], Any]
CALLS: dict[str, Start] = {
    "all_reduce": lambda comm, parts: comm.all_reduce(parts),
    "reduce": lambda comm, parts: comm.reduce(parts),
    "broadcast": lambda comm, parts: comm.broadcast(parts),
    "all_gather": lambda comm, parts: comm.all_gather(parts),
    "gather": lambda comm, parts: comm.gather(parts),
    "scatter": lambda comm, parts: comm.scatter(parts if comm.rank == 0 else None, like=parts[0]),
    "reduce_scatter": lambda comm, parts: comm.reduce_scatter(parts),
    "reduce_scatter of the greatest": lambda comm, parts: comm.reduce_scatter(parts, "max"),
    "reduce_scatter of the mean": lambda comm, parts: comm.reduce_scatter(parts, "avg"),
    "all_to_all": lambda comm, parts: comm.all_to_all(parts),
    "barrier": lambda comm, parts: comm.barrier(),
}


def done_without_a_wait() -> dict[str, bool]:
    """Return whether each call was done in time."""
    comm, found = world(), dict[str, bool]()
    for name, start in CALLS.items():
        work, limit = start(comm, torch.ones(comm.size, LENGTH)), time.monotonic() + LONGEST_WAIT
        while not (found.setdefault(name, False) or time.monotonic() > limit):
            time.sleep(0.001)
            found[name] = work.done()
        work.wait()
    return found


def test_completed_call_is_done_without_a_wait(transport: str) -> None:
    for rank, found in enumerate(on_ranks(done_without_a_wait, 2, transport, wait=20.0)):
        compare((f"{name} on rank {rank}", done, True) for name, done in found.items())
