"""Programs whose ranks die, leave, stay away or are late."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import torch


def dead_at_once(dist: Any) -> None:
    """dead rank: rank 1 ends its process without Python's cleanup.

    blame: 1
    dead: 1
    on: processes torch torch+detail
    """
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 1:
        os._exit(3)  # as a fault in native code would
    dist.all_reduce(torch.ones(4))  # <- here


def dead_at_once_twin(dist: Any) -> None:
    """Every rank lives."""
    ones = torch.ones(4)
    dist.all_reduce(ones)
    dist.all_reduce(ones)
    assert ones.tolist() == [9.0] * 4


def dead_exception(dist: Any) -> None:
    """dead rank: rank 1 raises an exception between two calls.

    blame: 1
    dead: 1
    twin: dead_at_once_twin
    """
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 1:
        raise FloatingPointError("the loss is infinite")
    dist.all_reduce(torch.ones(4))  # <- here


def dead_exit(dist: Any) -> None:
    """dead rank: rank 2 exits between two calls.

    blame: 2
    dead: 2
    twin: dead_at_once_twin
    """
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 2:
        sys.exit(3)
    dist.all_reduce(torch.ones(4))  # <- here


def dead_killed(dist: Any) -> None:
    """dead rank: rank 0 is killed between two calls.

    blame: 0
    dead: 0
    on: processes torch torch+detail
    twin: dead_at_once_twin
    """
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 0:
        os.kill(os.getpid(), signal.SIGKILL)  # as the system does when memory is short
    dist.all_reduce(torch.ones(4))  # <- here


def destroyed_by_one(dist: Any) -> None:
    """use after destroy: rank 1 leaves the world before the others have finished.

    blame: 1
    affected: 0 1 2
    """
    if dist.get_rank() == 1:
        dist.destroy_process_group()  # rank 1 still makes its call, and the others wait for it
    dist.all_reduce(torch.ones(4))  # <- here


def destroyed_by_one_twin(dist: Any) -> None:
    """All ranks leave after the last call."""
    ones = torch.ones(4)
    dist.all_reduce(ones)
    assert ones.tolist() == [3.0] * 4
    dist.destroy_process_group()


def destroyed_group(dist: Any) -> None:
    """use after destroy: rank 1 destroys the pair's group, which both ranks then use.

    blame: 1
    affected: 0 1
    """
    pair = dist.new_group([0, 1])
    if dist.get_rank() == 1:
        dist.destroy_process_group(pair)  # rank 0 waits for it there
    if dist.get_rank() < 2:
        dist.all_reduce(torch.ones(4), group=pair)  # <- here


def destroyed_group_twin(dist: Any) -> None:
    """Both destroy it after its last call."""
    pair = dist.new_group([0, 1])
    ones = torch.ones(4)
    if dist.get_rank() < 2:
        dist.all_reduce(ones, group=pair)
        assert ones.tolist() == [2.0] * 4
        dist.destroy_process_group(pair)
    dist.barrier()


def destroyed_world(dist: Any) -> None:
    """use after destroy: every rank leaves the world and then reduces.

    blame: 0 1 2
    """
    dist.all_reduce(torch.ones(4))
    dist.destroy_process_group()
    dist.all_reduce(torch.ones(4))  # <- here


def destroyed_world_twin(dist: Any) -> None:
    """Every rank leaves after the last call."""
    ones = torch.ones(4)
    dist.all_reduce(ones)
    assert ones.tolist() == [3.0] * 4
    dist.destroy_process_group()
    assert not dist.is_initialized()


def late_rank(dist: Any) -> None:
    """late rank: rank 1 makes its call after the others' deadline has passed.

    blame: 1
    """
    if dist.get_rank() == 1:
        time.sleep(2.4)  # the others have given up
    dist.all_reduce(torch.ones(4))  # <- here


def late_rank_twin(dist: Any) -> None:
    """Rank 1 is in time."""
    if dist.get_rank() == 1:
        time.sleep(0.4)
    ones = torch.ones(4)
    dist.all_reduce(ones)
    assert ones.tolist() == [3.0] * 4


def missing_asleep(dist: Any) -> None:
    """missing rank: rank 1 sleeps in its own code while the others reduce.

    blame: 1
    affected: 0 2
    """
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 1:
        time.sleep(100)  # <- here
    dist.all_reduce(torch.ones(4))


def missing_asleep_twin(dist: Any) -> None:
    """Rank 1 sleeps for a moment."""
    dist.all_reduce(torch.ones(4))
    if dist.get_rank() == 1:
        time.sleep(0.1)
    ones = torch.ones(4)
    dist.all_reduce(ones)
    assert ones.tolist() == [3.0] * 4


def missing_elsewhere(dist: Any) -> None:
    """missing rank: rank 1 waits for a message that nobody sends, the others at a barrier.

    blame: 1
    """
    if dist.get_rank() == 1:
        dist.recv(torch.empty(4), src=0)  # <- here
    dist.barrier()


def missing_elsewhere_twin(dist: Any) -> None:
    """The message is sent."""
    got = torch.zeros(4)
    if dist.get_rank() == 0:
        dist.send(torch.ones(4), dst=1)
    if dist.get_rank() == 1:
        dist.recv(got, src=0)
        assert got.tolist() == [1.0] * 4
    dist.barrier()


def missing_last_step(dist: Any) -> None:
    """missing rank: rank 2 has one batch fewer than the others.

    blame: 2
    affected: 0 1
    """
    for _ in range(3 if dist.get_rank() == 2 else 4):
        dist.all_reduce(torch.ones(4))  # <- here


def missing_last_step_twin(dist: Any) -> None:
    """The same number of steps everywhere."""
    ones = torch.ones(4)
    for _ in range(3):
        dist.all_reduce(ones)
    assert ones.tolist() == [27.0] * 4


def missing_returns(dist: Any) -> None:
    """missing rank: rank 1 skips a reduction and returns.

    blame: 1
    affected: 0 2
    """
    if dist.get_rank() != 1:
        dist.all_reduce(torch.ones(4))  # <- here


def missing_returns_twin(dist: Any) -> None:
    """Every rank makes the call."""
    ones = torch.ones(4)
    dist.all_reduce(ones)
    assert ones.tolist() == [3.0] * 4
