"""Functions of ranks that leave their world, split it, or make another."""

from __future__ import annotations

import os
import threading
from typing import Any

import numpy as np

import collshim
from collshim.world import peek, use
from tests.engine.worlds import attempt, world


def total() -> int:
    return int(world().all_reduce(np.array(world().rank + 1)).wait())


def again() -> Any:
    """Leave the process's world, and make it again from the environment."""
    first = total()
    collshim.close()
    left = peek() is None
    second = total()
    collshim.close()
    collshim.close()
    return first, left, second


def again_after_a_world_of_threads() -> Any:
    """Ranks can make different worlds before they meet in the next one."""
    for _ in range(world().rank):
        collshim.launch(total, 2, timeout=200)
    collshim.close()
    return total()


def twice() -> Any:
    """A second world is refused; the first continues."""
    refused = attempt(collshim.init)
    return refused.raised[0], "already has a world" in refused.text, total()


def contradicted() -> Any:
    collshim.close()
    refused = attempt(collshim.init, 1 - int(os.environ["RANK"]))
    return refused.raised[0], refused.text.startswith("the world's rank is "), total()


def closed() -> Any:
    comm = world()
    comm.barrier().wait()
    collshim.current().close()
    return attempt(comm.barrier).raised[0], attempt(lambda: comm.subgroup([0, 1])).raised[:1]


def split() -> Any:
    world = collshim.current()
    world.state["kept"] = 1
    world.communicator.timeout = 7.5
    part = world.split([2, 0])
    if part is None:
        return None
    with use(part):
        inside = collshim.current()
        shown = (inside.rank, inside.size, inside.local_rank, inside.local_size, inside.communicator.ranks)
        return shown, total(), dict(inside.state), inside.communicator.timeout, collshim.current() is part


def strange_thread() -> Any:
    """Another thread of a process uses the process's world."""
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(total()))
    thread.start()
    thread.join(20)
    return found


def state() -> Any:
    """State belongs to one rank."""
    collshim.current().state["rank"] = world().rank
    world().barrier().wait()
    return collshim.current().state, repr(collshim.current()), repr(world()).startswith("<Communicator ")
