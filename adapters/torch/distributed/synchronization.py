"""barrier and monitored_barrier. Conventions of torch 2.13.0."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch

import collshim.work
from collshim.communicator import Communicator
from collshim.errors import CommunicationError, DeadlineError
from collshim.torch.distributed import collectives
from collshim.torch.distributed.arguments import seconds, warn
from collshim.torch.distributed.membership import Group, ProcessGroup, group_of, warn_outside
from collshim.torch.distributed.posting import UNKNOWN, post, repeat_barrier
from collshim.torch.distributed.work import Work

_TAG = 2**29
"""The tag of monitored_barrier's messages, which no send of the program uses."""
_SHORTEST_PAUSE, _LONGEST_PAUSE = 5e-5, 2e-3
"""The first and the longest pause between two checks of the messages, in seconds."""


def barrier(
    group: Group = None,
    async_op: bool = False,
    device_ids: list[int] | None = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Wait until every rank of the group has called this.

    Args:
        group: the group of ranks that take part; None for all ranks.
        async_op: whether to return at once.
        device_ids: accepted as in torch; no device is needed.
        timeout: how long to wait; None for the group's timeout.

    Returns:
        None, or with ``async_op`` a Work, whose ``wait()`` returns True when every rank has called this. On a rank
        outside the group: None, with a UserWarning.

    Raises:
        TypeError: ``timeout`` is not a timedelta.
        ValueError: the default group is not initialized.
        RuntimeError: a rank did not arrive, or made a different call.
    """
    if not async_op and timeout is None and repeat_barrier(group) is not UNKNOWN:
        return None
    process_group = group_of(group)
    if process_group is None:
        warn_outside("barrier")
        return None
    limit = seconds(timeout)
    return post(process_group, async_op, "barrier", collectives.barrier, (), [], deadline=limit)


def monitored_barrier(group: Group = None, timeout: timedelta | None = None, wait_all_ranks: bool = False) -> None:
    """Wait until every rank of the group has called this; if some do not, rank 0's error names them.

    Torch supports this only over gloo; here it is available with every backend's name.

    Args:
        group: the group of ranks that take part; None for all ranks.
        timeout: how long rank 0 waits for the others; None for the group's timeout. A float counts as seconds, with a
            UserWarning.
        wait_all_ranks: whether rank 0's error names all ranks that did not arrive, or only the first.

    Returns:
        None. On a rank outside the group there is also a UserWarning.

    Raises:
        TypeError: ``timeout`` is not a timedelta.
        ValueError: the default group is not initialized.
        RuntimeError: on rank 0, other ranks did not arrive; on a rank that arrived, rank 0 reports missing ranks, or
            did not arrive itself.
    """
    process_group = group_of(group)
    if process_group is None:
        warn_outside("monitored_barrier")
        return
    if isinstance(timeout, float):
        text = "Please specify timeout arg as a timedelta. Converting current value of "
        warn(f"{text}{timeout} assuming it represents seconds")
        timeout = timedelta(seconds=timeout)
    monitor(process_group, timeout, wait_all_ranks)


def monitor(group: ProcessGroup, timeout: timedelta | None, wait_all_ranks: bool) -> None:
    """Run ``monitored_barrier`` on a group that this rank is in."""
    comm, own_limit = group.communicator, seconds(timeout)
    limit = (group.deadline or comm.timeout) if own_limit is None else own_limit
    if comm.rank == 0:
        _monitor(comm, limit, wait_all_ranks)
    else:
        _report(comm, limit, group.deadline or comm.timeout)


def _monitor(comm: Communicator, limit: float, wait_all_ranks: bool) -> None:
    """Receive from every rank, on rank 0, and send to those that arrived whether all did."""
    works = [comm.recv(rank, out=_flag(), tag=_TAG) for rank in range(1, comm.size)]
    absent = _absent(works, time.monotonic() + limit)
    for rank in range(1, comm.size):
        if rank not in absent:
            comm.send(_flag(not absent), rank, _TAG).free()
    if not absent:
        return
    names = f"Ranks {', '.join(map(str, absent))}" if wait_all_ranks else f"Rank {absent[0]}"
    text = f"[Rank 0]: {names} failed to pass monitoredBarrier in {1000 * limit:g} ms"
    if limit == 0:
        text = f"[Rank 0]: Rank 0 timed out in monitoredBarrier after 0 ms: {text}"
    raise DeadlineError(text)


def _absent(works: Sequence[collshim.work.Work[Any]], limit: float) -> list[int]:
    pending, pause = dict(enumerate(works, start=1)), _SHORTEST_PAUSE
    while True:
        pending = {rank: work for rank, work in pending.items() if not work.done() or work.exception() is not None}
        if not pending or time.monotonic() >= limit:
            return sorted(pending)
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def _report(comm: Communicator, limit: float, patience: float) -> None:
    """Send to rank 0, on a different rank, that this rank has arrived; receive whether all ranks have."""
    text = f"Rank {comm.rank} successfully reached monitoredBarrier, but received errors while waiting for send/recv "
    text += "from rank 0. Please check rank 0 logs for faulty rank."
    answer = _flag()
    try:
        comm.send(_flag(), 0, _TAG).free()
        comm.recv(0, out=answer, tag=_TAG).wait(patience + limit)  # rank 0 may arrive late, and then waits for others
    except CommunicationError as error:
        raise DeadlineError(f"{text} {error}") from error
    if not answer.item():
        raise DeadlineError(text)


def _flag(value: bool = False) -> torch.Tensor:
    return torch.tensor([value])
