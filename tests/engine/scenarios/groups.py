"""Subgroups of a world of four: in any order, of each other, at the same time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from collshim import Communicator
from tests.engine.worlds import attempt

SIZE = 4

Scenarios = dict[str, tuple[Callable[[Communicator], Any], list[Any]]]


def _gathered(comm: Communicator | None, mark: int) -> Any:
    """Return every member's mark, in the group's order; None outside the group."""
    return None if comm is None else comm.all_gather(np.array(mark)).wait().tolist()


def _in_the_order_given(comm: Communicator) -> Any:
    group = comm.subgroup([3, 0, 2])
    return _gathered(group, 10 * comm.rank)


def _numbers_of_members(comm: Communicator) -> Any:
    group = comm.subgroup([3, 0, 2])
    return None if group is None else (group.rank, group.size, group.ranks)


def _roots_are_ranks_in_the_group(comm: Communicator) -> Any:
    group = comm.subgroup([3, 0, 2])
    return None if group is None else group.broadcast(np.array(comm.rank), root=0).wait().item()


def _members_alone_make_it(comm: Communicator) -> Any:
    return _gathered(comm.subgroup([1, 3]), comm.rank) if comm.rank in (1, 3) else "did not call"


def _disjoint_at_once(comm: Communicator) -> Any:
    groups = [comm.subgroup([0, 2]), comm.subgroup([3, 1])]
    return [_gathered(group, comm.rank) for group in groups]


def _overlapping(comm: Communicator) -> Any:
    """Start works of two groups that share ranks in one order and wait for them in the other."""
    low, high = comm.subgroup([0, 1, 2]), comm.subgroup([2, 1, 3])
    works = [group.all_reduce(np.array(comm.rank)) for group in (low, high) if group is not None]
    return [work.wait().item() for work in reversed(works)][::-1]


def _of_a_subgroup(comm: Communicator) -> Any:
    outer = comm.subgroup([3, 2, 1])
    inner = None if outer is None else outer.subgroup([2, 0])
    return None if inner is None else (inner.ranks, _gathered(inner, comm.rank))


def _twice_the_same(comm: Communicator) -> Any:
    """Two groups of the same ranks do not match each other's calls."""
    one, two = comm.subgroup([0, 1]), comm.subgroup([0, 1])
    if one is None or two is None:
        return None
    first, second = (one, two) if comm.rank == 0 else (two, one)
    works = {group.name: group.all_gather(np.array(comm.rank + 10 * (group is two))) for group in (first, second)}
    return [works[group.name].wait().tolist() for group in (one, two)]


def _orders_are_different_groups(comm: Communicator) -> Any:
    if comm.rank > 1:
        return None
    forward, backward = comm.subgroup([0, 1]), comm.subgroup([1, 0])
    return [_gathered(forward, comm.rank), _gathered(backward, comm.rank)]


def _of_one(comm: Communicator) -> Any:
    group = comm.subgroup([comm.rank])
    return _gathered(group, comm.rank)


def _messages(comm: Communicator) -> Any:
    """Rank 0 of the group sends to its rank 1; a message of the world with the same tag is a different one."""
    group = comm.subgroup([2, 1])
    if group is None:
        return None
    if comm.rank == 2:
        works = [comm.send(np.array(5), 1), group.send(np.array(7), 1)]
        return [work.wait() for work in works]
    inner = group.recv(0, like=np.array(0)).wait().item()
    return inner, comm.recv(2, like=np.array(0)).wait().item()


def _closed(comm: Communicator) -> Any:
    """A closed group refuses calls; its parent continues."""
    group = comm.subgroup([1, 0])
    refused = None
    if group is not None:
        group.barrier().wait()
        group.close()
        group.close()
        refused = attempt(group.barrier).raised[0]
    return refused, _gathered(comm, comm.rank)


def _many(comm: Communicator) -> Any:
    """Make and close groups one after the other."""
    total = 0
    for _ in range(20):
        group = comm.subgroup([0, 1, 2, 3])
        assert group is not None
        total += group.all_reduce(np.array(1)).wait().item()
        group.close()
    return total


def _deadline(comm: Communicator) -> Any:
    group = comm.subgroup([0, 1, 2, 3])
    assert group is not None
    return group.timeout == comm.timeout, group.checks == comm.checks


GROUPS: Scenarios = {
    "members sit in the order given": (_in_the_order_given, [[30, 0, 20], None, [30, 0, 20], [30, 0, 20]]),
    "members have numbers of their own": (
        _numbers_of_members,
        [(1, 3, (3, 0, 2)), None, (2, 3, (3, 0, 2)), (0, 3, (3, 0, 2))],
    ),
    "roots are ranks in the group": (_roots_are_ranks_in_the_group, [3, None, 3, 3]),
    "members alone make it": (_members_alone_make_it, ["did not call", [1, 3], "did not call", [1, 3]]),
    "disjoint groups work at once": (
        _disjoint_at_once,
        [[[0, 2], None], [None, [3, 1]], [[0, 2], None], [None, [3, 1]]],
    ),
    "overlapping groups may be waited for in any order": (_overlapping, [[3], [3, 6], [3, 6], [6]]),
    "a group of a group": (_of_a_subgroup, [None, ((1, 3), [1, 3]), None, ((1, 3), [1, 3])]),
    "groups of the same ranks are apart": (
        _twice_the_same,
        [[[0, 1], [10, 11]], [[0, 1], [10, 11]], None, None],
    ),
    "another order is another group": (
        _orders_are_different_groups,
        [[[0, 1], [1, 0]], [[0, 1], [1, 0]], None, None],
    ),
    "a group of one": (_of_one, [[0], [1], [2], [3]]),
    "messages stay in their group": (_messages, [None, (7, 5), [None, None], None]),
    "a closed group refuses calls": (
        _closed,
        [(name, [0, 1, 2, 3]) for name in ["BrokenCommunicatorError"] * 2 + [None] * 2],
    ),
    "many groups, one after the other": (_many, [80] * 4),
    "deadline and check are the parent's": (_deadline, [(True, True)] * 4),
}


def scenario(name: str, comm: Communicator) -> Any:
    return GROUPS[name][0](comm)
