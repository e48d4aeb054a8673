"""A world of one rank that speaks to itself over NCCL and gloo.

collshim's own world of a single rank communicates nothing; this one does everything that ranks on GPUs of their own
would do, so that one GPU is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from torch.distributed import HashStore

from collshim.transports.process_group import ProcessGroupTransport
from collshim.transports.rendezvous import Rendezvous
from collshim.world import World

WAIT = 60.0
"""Seconds that a wait may take; the first collective of a group starts NCCL."""

_number = count()


@contextmanager
def world_of_one(*, checks: bool = False) -> Iterator[World]:
    """Its only rank is who asks; with ``checks`` it compares its calls with its own."""
    rendezvous = Rendezvous(HashStore(), 0, WAIT, name=f"alone{next(_number)}")
    world = World(ProcessGroupTransport(rendezvous, (0,), "all", checks=checks), 0, 1, (0,))
    world.communicator.timeout = WAIT
    try:
        yield world
    finally:
        rendezvous.close()
