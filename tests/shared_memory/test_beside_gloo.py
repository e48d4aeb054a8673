"""Groups whose ranks share memory: which of them have a ProcessGroup of gloo's as well."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch

from collshim import Communicator
from collshim.transports.processes import transport
from collshim.transports.shared_memory import core, meeting
from tests.engine.worlds import on_ranks, world

pytestmark = [
    pytest.mark.processes,
    pytest.mark.skipif(core.Ring is None, reason=f"shared memory is not used here: {core.description()}"),
]

LARGE = 1 << 18


def _sockets() -> int:
    """Return how many sockets this process has."""
    found = 0
    for descriptor in os.listdir("/proc/self/fd"):
        with suppress(OSError):  # the descriptor of the folder itself
            found += os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:")
    return found


def _uses(comm: Communicator) -> list[Any]:
    """Return the sums of a small and of a large tensor, and how many ProcessGroups the communicator has."""
    group: Any = comm._transport
    sums = [float(comm.all_reduce(torch.ones(count)).wait().sum()) for count in (1, LARGE)]
    comm.barrier().wait()
    own = group.data_group, group._fingerprint_group
    return [sums, len({id(part) for part in own if part is not None})]


def groups() -> tuple[list[Any], int]:
    """Make ten groups; return what ``_uses`` says of the last one, and how many sockets were opened."""
    comm = world()
    before = _sockets()
    parts = [comm.subgroup(range(comm.size)) for _ in range(10)]
    opened = _sockets() - before
    assert parts[-1] is not None
    return _uses(parts[-1]), opened


def group_of_one() -> list[Any]:
    """Make a group of this rank alone."""
    comm = world()
    part = comm.subgroup([comm.rank])
    assert part is not None
    return _uses(part)


def unlike(replaced: Any, name: str, function: Callable[..., bool | None]) -> list[Any]:
    """Make a group after rank 1 has replaced a function."""
    comm = world()
    if comm.rank == 1:
        setattr(replaced, name, function)
    part = comm.subgroup(range(comm.size))
    assert part is not None
    return _uses(part)


def one_cannot_read() -> list[Any]:
    """Let rank 1 read no other rank's memory."""
    return unlike(meeting, "_reads_far", lambda offers, rank: False)


def one_has_a_gpu() -> list[Any]:
    """Let rank 1 have NCCL."""
    return unlike(transport, "nccl_is_there", lambda: True)


def one_cannot_map() -> list[Any]:
    """Let rank 1 map no memory."""
    return unlike(meeting, "_join", lambda *arguments: None)


def test_groups_that_share_memory_open_no_socket() -> None:
    assert on_ranks(groups, 3, "processes") == [([[3.0, 3.0 * LARGE], 0], 0)] * 3


def test_group_of_one_rank_has_one_process_group() -> None:
    assert on_ranks(group_of_one, 2, "processes") == [[[1.0, LARGE], 1]] * 2


@pytest.mark.parametrize(("program", "process_groups"), [(one_cannot_read, 0), (one_has_a_gpu, 1), (one_cannot_map, 2)])
def test_one_rank_decides_what_the_group_needs(program: Callable[[], list[Any]], process_groups: int) -> None:
    assert on_ranks(program, 3, "processes") == [[[3.0, 3.0 * LARGE], process_groups]] * 3
