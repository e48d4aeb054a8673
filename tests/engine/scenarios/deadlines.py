"""Worlds with a missing rank. Every scenario returns, on each rank, the errors of that rank's waits."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from collshim import Communicator
from collshim.testing import sleep
from tests.engine.worlds import WAIT, Outcome, attempt, world

SIZE = 3
SHORT = 1.0
"""Seconds that the ranks wait for the missing one."""

LATER = 10.0
"""Seconds that the missing one waits elsewhere: more than the others need to give up, even if the machine is busy."""


def _absent(call: Callable[[Communicator], Any]) -> Any:
    """Rank 2 arrives after the others gave up; then all call once more."""
    comm = world()
    first = Outcome()
    if comm.rank == 2:
        sleep(SHORT + 2)
    else:
        first = attempt(lambda: call(comm).wait())
    return first, attempt(lambda: comm.barrier().wait())


def absent_from_a_reduction() -> Any:
    return _absent(lambda c: c.all_reduce(torch.ones(3)))


def absent_from_a_large_reduction() -> Any:
    return _absent(lambda c: c.all_reduce(torch.ones(3000)))


def absent_from_a_barrier() -> Any:
    return _absent(lambda c: c.barrier())


def absent_root() -> Any:
    return _absent(lambda c: c.broadcast(torch.ones(3), 2))


def absent_from_a_ragged_gather() -> Any:
    return _absent(lambda c: c.all_gather_ragged(torch.ones(c.rank)))


def elsewhere() -> Any:
    """Rank 2 waits for a message instead."""
    comm = world()
    if comm.rank == 2:
        return attempt(lambda: comm.recv(0, like=torch.ones(5)).wait(LATER))
    return attempt(lambda: comm.all_reduce(torch.ones(3)).wait())


def elsewhere_and_first_to_give_up() -> Any:
    """As before, but rank 2's deadline is the first to pass."""
    comm = world()
    if comm.rank == 2:
        return attempt(lambda: comm.recv(0, like=torch.ones(5)).wait(SHORT))
    return attempt(lambda: comm.all_reduce(torch.ones(3)).wait(SHORT + 3))


def in_another_group() -> Any:
    """Rank 2 is in a group's call that rank 1 does not join; both groups say so."""
    comm = world()
    pair = comm.subgroup([1, 2])
    if comm.rank == 2:
        assert pair is not None
        return attempt(lambda: pair.all_gather(torch.ones(7)).wait(LATER))
    return attempt(lambda: comm.all_reduce(torch.ones(3)).wait())


def a_barrier_beside_a_discovery() -> Any:
    """Rank 2 makes a call with discovered shapes, the others a barrier."""
    comm = world()
    call = (lambda: comm.all_gather_ragged(torch.ones(3))) if comm.rank == 2 else comm.barrier
    return attempt(lambda: call().wait())


def no_message() -> Any:
    comm = world()
    if comm.rank == 1:
        return attempt(lambda: comm.recv(0, like=torch.ones(3)).wait())
    sleep(SHORT + 1)
    return Outcome()


def no_message_from_anybody() -> Any:
    comm = world()
    if comm.rank == 1:
        return attempt(lambda: comm.recv(None, like=torch.ones(3)).wait())
    sleep(SHORT + 1)
    return Outcome()


def nobody_receives() -> Any:
    comm = world()
    if comm.rank == 1:
        return attempt(lambda: comm.send(torch.ones(100_000), 0).wait())
    sleep(SHORT + 1)
    return Outcome()


def a_wait_with_its_own_deadline() -> Any:
    comm = world()
    comm.timeout = 60.0
    if comm.rank == 2:
        sleep(SHORT + 1)
        return Outcome()
    return attempt(lambda: comm.all_reduce(torch.ones(3)).wait(SHORT))


def a_broken_group() -> Any:
    """A group's failure does not fail the world."""
    comm = world()
    group = comm.subgroup([2, 1, 0])
    assert group is not None
    failed = Outcome() if comm.rank == 2 else attempt(lambda: group.barrier().wait(SHORT))
    comm.timeout = 4 * WAIT
    return failed, comm.all_reduce(np.array(1)).wait().item()


def an_incomplete_group() -> Any:
    """Rank 2 does not come to make a group."""
    comm = world()
    if comm.rank == 2:
        sleep(SHORT + 2)
        return Outcome()

    def made_and_used() -> Any:
        group = comm.subgroup([0, 1, 2])
        assert group is not None
        return group.barrier().wait()

    return attempt(made_and_used)


def a_dropped_group() -> Any:
    """Unanswered calls of groups without references delay nobody."""
    comm = world()
    comm.timeout = WAIT
    for _ in range(3):
        group = comm.subgroup([0, 1, 2])
        assert group is not None
        if comm.rank == 0:  # the others may have dropped it already, and so closed it
            attempt(lambda group=group: group.all_reduce(torch.ones(3)))
            attempt(lambda group=group: group.all_gather_ragged(torch.ones(3000)))
        del group
        gc.collect()
        comm.barrier().wait()
    return comm.all_reduce(np.array(1)).wait().item()


def one_after_the_other() -> Any:
    """Rank 0 waits for 1, 1 for 2, 2 for all, and 3 joins nothing."""
    comm = world()
    comm.timeout = SHORT + 0.5 * comm.rank
    if comm.rank == 3:
        sleep(4 * SHORT)
        return None
    if comm.rank == 2:
        return attempt(lambda: comm.all_reduce(torch.ones(2)).wait())
    return attempt(lambda: comm.recv(comm.rank + 1, like=torch.ones(2)).wait())


def absent_from_a_backward() -> Any:
    """Rank 2's loss does not use the result."""
    comm = world()
    given = torch.ones(3, requires_grad=True)
    got = comm.all_reduce(given).wait(20.0)  # the test is about the backward's deadline
    if comm.rank == 2:
        sleep(SHORT + 1)
        return Outcome()
    return attempt(got.sum().backward)


ABSENT = {
    scenario.__name__: scenario
    for scenario in (
        absent_from_a_reduction,
        absent_from_a_large_reduction,
        absent_from_a_barrier,
        absent_root,
        absent_from_a_ragged_gather,
    )
}
OTHERS = {
    scenario.__name__: scenario
    for scenario in (
        elsewhere,
        elsewhere_and_first_to_give_up,
        in_another_group,
        a_barrier_beside_a_discovery,
        no_message,
        no_message_from_anybody,
        nobody_receives,
        a_wait_with_its_own_deadline,
        a_broken_group,
        an_incomplete_group,
        a_dropped_group,
        absent_from_a_backward,
    )
}
