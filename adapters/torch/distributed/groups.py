"""Groups and ranks: new_group, group.WORLD, GroupMember, and queries about a group.

Conventions of torch 2.13.0. With ``use_local_synchronization=True``, only the members of a group need to call
``new_group``, however many other groups they are in. In torch, the members may derive different names for the
group, and then wait for each other forever.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from collshim.adapting.refusing import refuse
from collshim.communicator import Communicator
from collshim.torch.distributed.arguments import seconds
from collshim.torch.distributed.backends import device_backends, normalize_backend
from collshim.torch.distributed.c10d.backend import introduce
from collshim.torch.distributed.c10d.group import CollectiveGroup
from collshim.torch.distributed.membership import (
    NON_GROUP_MEMBER,
    Group,
    ProcessGroup,
    group_of,
    group_rank_of,
    membership,
    require_membership,
)
from collshim.torch.distributed.options import give_options, require_options


class _HasWorld(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group; None before ``init_process_group``."""
        state = membership()
        return None if state is None else state.default

    @WORLD.setter
    def WORLD(cls, default: Group) -> None:
        process_group = require_membership().find(default)
        if process_group is None:
            refuse(ValueError, f"group.WORLD is {default!r}, should be a group that this rank is in")
        require_membership().default = process_group


class group(metaclass=_HasWorld):
    """The holder of ``group.WORLD``, this rank's default group, which may be set to any group that this rank is in."""


class GroupMember(metaclass=_HasWorld):
    """``GroupMember.WORLD``, and the value that ``new_group`` returns on a rank outside the new group."""

    NON_GROUP_MEMBER = NON_GROUP_MEMBER


def new_group(
    ranks: Iterable[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Group:
    """Make a group of some ranks; every rank calls this, in the same order, whether or not it is in the group.

    Args:
        ranks: global ranks, in a list or any other iterable; None for all.
        timeout: how long a wait in the group may take; None for the default group's timeout.
        backend: a backend's name; None for the default group's backend.
        pg_options: a ``ProcessGroupNCCL.Options`` with which NCCL connects the group; see ``init_process_group``.
        device_id: accepted, but has no effect, because the device of the tensors decides how they are sent.
        use_local_synchronization: whether only the members need to call this; on other ranks the call returns None.
        group_desc: a description for people.
        sort_ranks: whether the group is ordered by global rank, not in the order of ``ranks``.

    Returns:
        The group, or, on a rank outside it, ``GroupMember.NON_GROUP_MEMBER``, which is -100.

    Raises:
        ValueError: the default group is not initialized; ``ranks`` has a rank twice, or one that is out of range.
        TypeError: ``ranks`` is empty, or does not hold ints; ``timeout`` is not a timedelta.
        AssertionError, RuntimeError: there is no such backend; ``pg_options`` is of another class.
    """
    state = require_membership()
    require_options(pg_options, timeout)
    name = normalize_backend(backend) if backend else state.default.backend
    deadline = state.default.deadline if timeout is None else seconds(timeout)
    global_ranks = None if ranks is None else _ints(ranks)
    if use_local_synchronization and global_ranks is not None and state.whole.rank() not in global_ranks:
        return None
    members = _members(global_ranks, state.whole.size(), sort_ranks)
    state.made += 1
    part = state.whole.communicator.subgroup(members, kept=True)
    if part is None:
        state.others = members
        return NON_GROUP_MEMBER
    give_options(part, pg_options)
    return register_group(part, name, group_desc, deadline)


def register_group(comm: Communicator, backend: str, desc: str | None, deadline: float | None) -> CollectiveGroup:
    """Make a group over a communicator, and add it to this rank's groups and to torch's."""
    group = require_membership().add(CollectiveGroup(comm, backend, comm.name, desc, deadline))
    introduce(group)
    return group


def _ints(ranks: Iterable[int]) -> list[int]:
    """Return ranks from any iterable, as torch accepts them, even from a set or an array."""
    numbers = list(ranks) if isinstance(ranks, Iterable) else []
    if not numbers or not all(hasattr(rank, "__index__") for rank in numbers):
        refuse(TypeError, f"ranks list is {ranks!r}, should hold at least one rank, and ints")
    return [rank.__index__() for rank in numbers]


def _members(ranks: list[int] | None, size: int, sort_ranks: bool) -> list[int]:
    if ranks is None:
        return list(range(size))
    if len(set(ranks)) != len(ranks):
        refuse(ValueError, f"ranks list must not contain duplicate entries, got {ranks}")
    if len(ranks) > size:
        refuse(ValueError, f"the new group's world size should be less or equal to the world size, got {len(ranks)}")
    for rank in ranks:
        if not 0 <= rank < size:
            refuse(ValueError, f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (world_size={size})")
    return sorted(ranks) if sort_ranks else ranks


def _rank_not_in_group(group: Group) -> bool:  # pyright: ignore[reportUnusedFunction]
    """Return whether ``group`` is the value that ``new_group`` returns on a rank outside the new group."""
    return isinstance(group, int) and group == NON_GROUP_MEMBER


def get_rank(group: Group = None) -> int:
    """Return this rank's rank in the group, or in the default group for None; -1 outside the group.

    Raises:
        ValueError: the default group is not initialized; the group is destroyed.
    """
    process_group = group_of(group)
    return -1 if process_group is None else process_group.rank()


def get_world_size(group: Group = None) -> int:
    """Return the number of ranks of the group, or of the default group for None; -1 outside the group.

    Raises:
        ValueError: the default group is not initialized; the group is destroyed.
    """
    process_group = group_of(group)
    return -1 if process_group is None else process_group.size()


def get_backend(group: Group = None) -> str:
    """Return the name of the group's backend; "undefined" if the group was made without one.

    Raises:
        ValueError: the default group is not initialized; this rank is outside the group; the group is destroyed.
    """
    state = require_membership()
    if group is None:
        return state.default.backend
    if group == NON_GROUP_MEMBER:
        refuse(ValueError, f"Invalid process group specified: this rank is outside it, {group!r}")
    process_group = state.find(group)
    if process_group is None:
        refuse(ValueError, f"Process group {group} is not initialized in the world group map")
    return process_group.backend


def get_backend_impl(group: Group | str = None, device: Any = None) -> ProcessGroup:
    """Return the object that carries out the group's calls on any device: the group, with a method for each collective.

    From torch 2.14.

    Args:
        group: the group, or its name.
        device: accepted, but has no effect.

    Raises:
        ValueError: the default group is not initialized; this rank is outside the group; no group has this name.
    """
    state = require_membership()
    if isinstance(group, str):
        found = next((one for one in state.groups if one.group_name == group), None)
    else:
        found = group_of(group)
    if found is None:
        refuse(ValueError, f"Invalid process group specified: {group!r}")
    return found


def get_backend_config(group: Group = None) -> str:
    """Return each device's backend, such as "cpu:gloo,cuda:nccl".

    Raises:
        ValueError: the default group is not initialized; this rank is outside the group.
    """
    name = get_backend(group)
    return ",".join(f"{device}:{backend}" for device, backend in device_backends(name).items())


def set_timeout(timeout: timedelta, group: Group = None) -> None:
    """Set how long waits of the group may take from now on, on this rank. From torch 2.15.

    Raises:
        ValueError: this rank is outside the group; the default group is not initialized.
    """
    process_group = group_of(group)
    if process_group is None:
        refuse(ValueError, "Invalid process group specified")
    process_group.deadline = seconds(timeout)


def get_pg_count() -> int:
    """Return how many groups were made: the default group, and one for each ``new_group``, even without this rank."""
    state = membership()
    return 0 if state is None else state.made


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """Return this rank's rank on its machine, from the launcher's LOCAL_RANK.

    Args:
        fallback_rank: the result if there is no LOCAL_RANK.

    Raises:
        RuntimeError: LOCAL_RANK is not set, and ``fallback_rank`` is None.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        text = "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank`"
        refuse(RuntimeError, f"{text} to work if no launcher started this rank")
    return int(fallback_rank)


def get_process_group_ranks(group: Group) -> list[int]:
    """Return the group's global ranks, in the group's order; None means the default group.

    Raises:
        ValueError: the default group is not initialized; this rank is outside the group (torch then returns another
            group's ranks).
    """
    return list(_require_inside(group).communicator.ranks)


def get_global_rank(group: Group, group_rank: int) -> int:
    """Return the global rank of a rank of the group.

    Raises:
        ValueError: there is no such group, or the group has no such rank.
    """
    process_group = _require_group(group)
    if process_group is require_membership().whole:
        return group_rank
    if group_rank not in range(process_group.size()):
        refuse(ValueError, f"Group rank {group_rank} is not part of group {process_group}")
    return process_group.communicator.ranks[group_rank]


def get_group_rank(group: Group, global_rank: int) -> int:
    """Return a global rank's rank in the group.

    Raises:
        ValueError: there is no such group, or the rank is not in it.
    """
    rank: int = group_rank_of(_require_group(group), global_rank)
    return rank


def _require_group(group: Group) -> ProcessGroup:
    require_membership()
    return _require_inside(NON_GROUP_MEMBER if group is None else group)  # None is not a group here, as in torch


def _require_inside(group: Group) -> ProcessGroup:
    process_group = group_of(group)
    if process_group is None:
        refuse(ValueError, f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return process_group
