"""A world of one rank that communicates with itself over NCCL and gloo.

collshim's own world of a single rank communicates nothing; this one does the same as ranks on separate GPUs, so that
one GPU is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from torch.distributed import HashStore

from collshim.transports.processes.process_groups import ProcessGroups
from collshim.transports.processes.transport import ProcessTransport
from collshim.transports.rendezvous.world import ProcessWorld
from collshim.world import World

WAIT = 60.0
"""The limit in seconds of a wait; the first collective of a group starts NCCL."""

_number = count()


@contextmanager
def world_of_one(*, checks: bool = False) -> Iterator[World]:
    """Make a world whose only rank is the caller; with ``checks`` it compares its calls with its own."""
    shared = ProcessWorld(HashStore(), 0, WAIT, name=f"alone{next(_number)}")
    world = World(ProcessTransport(ProcessGroups(shared), (0,), "all", checks=checks), 0, 1, (0,))
    world.communicator.timeout = WAIT
    try:
        yield world
    finally:
        shared.close()
