"""Programs whose calls are logged."""

from __future__ import annotations

import contextlib
import os
import signal

import torch

import collshim
from collshim import Communicator


def world() -> Communicator:
    return collshim.current().communicator


def fine() -> None:
    """Make a collective, another that is polled, a message to any rank, and one that is left to complete."""
    comm, x = world(), torch.ones(3)
    comm.all_reduce(x).wait()
    work = comm.all_gather(x)
    while not work.done():
        pass
    if comm.rank == 0:
        comm.send(x, 1).wait()
    if comm.rank == 1:
        comm.recv(None, like=x).wait()
    comm.all_reduce(x).free()


def missing() -> None:
    """Make two calls, of which rank 1 makes the first."""
    comm = world()
    comm.all_reduce(torch.ones(3)).wait()
    if comm.rank != 1:
        comm.broadcast(torch.ones(2), 0).wait()


def differing() -> None:
    """Make a call that differs on rank 1."""
    comm = world()
    comm.all_reduce(torch.ones(2 + (comm.rank == 1))).wait()


def killed() -> None:
    """Kill rank 1 before its second call."""
    comm = world()
    comm.all_reduce(torch.ones(3)).wait()
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    comm.barrier().wait()


def polled() -> None:
    """Make a call whose end rank 1 polls for."""
    work = world().all_reduce(torch.ones(3))
    while world().rank == 1 and not work.done():
        pass
    if world().rank != 1:
        work.wait()


def unmatched() -> None:
    """Send without a recv, more than fits into an eager message."""
    comm = world()
    if comm.rank == 0:
        comm.send(torch.ones(5000), 1).wait()


def crossed() -> None:
    """Wait for each other in different groups."""
    comm = world()
    group = comm.subgroup([1, 0])
    assert group is not None
    (comm if comm.rank else group).barrier().wait(0.2)


def unfinished() -> None:
    """Post a call that nobody waits for."""
    global kept
    kept = world().all_reduce(torch.ones(2))
    world().barrier().wait()


kept: object = None


def refused() -> None:
    """Have a call refused as it is posted, and catch that."""
    comm = world()
    part = comm.subgroup([0, 1])
    assert part is not None
    part.close()
    with contextlib.suppress(collshim.BrokenCommunicatorError):
        part.barrier()


def many() -> None:
    """Make 30 calls that agree."""
    for _ in range(30):
        world().barrier().wait()
