"""Groups and ranks: new_group, group.WORLD, GroupMember, and what is known of a group.

Conventions of torch 2.13.0. A group of ``use_local_synchronization=True`` needs its members' calls alone, however many
other groups each of them is in (torch: they may derive different names for it, and wait for each other in vain).
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from collshim.adapting.refusing import refuse
from collshim.communicator import Communicator
from collshim.torch.distributed.arguments import seconds
from collshim.torch.distributed.backends import backend_named, device_backends
from collshim.torch.distributed.c10d.backend import introduce
from collshim.torch.distributed.c10d.group import CollectiveGroup
from collshim.torch.distributed.membership import (
    NON_GROUP_MEMBER,
    Group,
    ProcessGroup,
    group_of,
    group_rank_of,
    membership,
    required,
)
from collshim.torch.distributed.options import give_options, required_options


class _HasWorld(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The group of all ranks; None before ``init_process_group``."""
        state = membership()
        return None if state is None else state.default

    @WORLD.setter
    def WORLD(cls, default: Group) -> None:
        process_group = required().known(default)
        if process_group is None:
            refuse(ValueError, f"group.WORLD is {default!r}, should be a group that this rank is in")
        required().default = process_group


class group(metaclass=_HasWorld):
    """``group.WORLD`` is this rank's default group, and may be set to another group that it is in."""


class GroupMember(metaclass=_HasWorld):
    """``GroupMember.WORLD``, and what ``new_group`` returns on a rank that is not in the new group."""

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
    """A group of some ranks, which every rank calls for in the same order, whether it is in the group or not.

    Args:
        ranks: global ranks, in a list or any other container; None for all.
        timeout: how long a wait in the group may take; None for the default group's.
        backend: a backend's name; None for the default group's.
        pg_options: a ``ProcessGroupNCCL.Options``, which NCCL connects the group with; as for ``init_process_group``.
        device_id: accepted and not needed: the tensors' device says how they travel.
        use_local_synchronization: only the members call; another rank may, and gets None.
        group_desc: a description for people.
        sort_ranks: whether the group's order is that of the global ranks, or that of ``ranks``.

    Returns:
        The group; on a rank that is not in it ``GroupMember.NON_GROUP_MEMBER``, -100.

    Raises:
        ValueError: no default group yet; a rank twice, or out of range.
        TypeError: no ranks, or no ints; ``timeout`` is no timedelta.
        AssertionError, RuntimeError: no such backend; ``pg_options`` of another class.
    """
    state = required()
    required_options(pg_options, timeout)
    name = backend_named(backend) if backend else state.default.backend
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
    return registered(part, name, group_desc, deadline)


def registered(comm: Communicator, backend: str, desc: str | None, deadline: float | None) -> CollectiveGroup:
    """A group of this rank's over a communicator."""
    group = required().add(CollectiveGroup(comm, backend, comm.name, desc, deadline))
    introduce(group)
    return group


def _ints(ranks: Iterable[int]) -> list[int]:
    """Ranks in any container, as torch takes them; a set or an array too."""
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
    """Whether ``group`` is what ``new_group`` returns on a rank that is not in the new group."""
    return isinstance(group, int) and group == NON_GROUP_MEMBER


def get_rank(group: Group = None) -> int:
    """This rank in the group, or -1 outside it; in the default group where none is given.

    Raises:
        ValueError: no default group yet; a group that is destroyed.
    """
    process_group = group_of(group)
    return -1 if process_group is None else process_group.rank()


def get_world_size(group: Group = None) -> int:
    """How many ranks the group has, or -1 outside it; the default group where none is given.

    Raises:
        ValueError: no default group yet; a group that is destroyed.
    """
    process_group = group_of(group)
    return -1 if process_group is None else process_group.size()


def get_backend(group: Group = None) -> str:
    """The name of the backend that the group was made with; "undefined" where none was named.

    Raises:
        ValueError: no default group yet; outside the group; a group that is destroyed.
    """
    state = required()
    if group is None:
        return state.default.backend
    if group == NON_GROUP_MEMBER:
        refuse(ValueError, f"Invalid process group specified: this rank is outside it, {group!r}")
    process_group = state.known(group)
    if process_group is None:
        refuse(ValueError, f"Process group {group} is not initialized in the world group map")
    return process_group.backend


def get_backend_impl(group: Group | str = None, device: Any = None) -> ProcessGroup:
    """What carries the group's calls, with a method for each collective: the group itself, of tensors on any device.

    Of torch 2.14 and newer.

    Args:
        group: or its name.
        device: accepted and not needed.

    Raises:
        ValueError: no default group yet; outside the group; no group of this name.
    """
    state = required()
    if isinstance(group, str):
        found = next((one for one in state.groups if one.group_name == group), None)
    else:
        found = group_of(group)
    if found is None:
        refuse(ValueError, f"Invalid process group specified: {group!r}")
    return found


def get_backend_config(group: Group = None) -> str:
    """Each device's backend, such as "cpu:gloo,cuda:nccl".

    Raises:
        ValueError: no default group yet; outside the group.
    """
    name = get_backend(group)
    return ",".join(f"{device}:{backend}" for device, backend in device_backends(name).items())


def set_timeout(timeout: timedelta, group: Group = None) -> None:
    """How long waits of the group may take from now on, on this rank. As torch 2.15 has it.

    Raises:
        ValueError: this rank is outside the group; no default group yet.
    """
    process_group = group_of(group)
    if process_group is None:
        refuse(ValueError, "Invalid process group specified")
    process_group.deadline = seconds(timeout)


def get_pg_count() -> int:
    """How many groups were made, this rank's or not: the default one, and each call of ``new_group``; 0 without any."""
    state = membership()
    return 0 if state is None else state.made


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """This rank among those of its machine, from the launcher's LOCAL_RANK.

    Args:
        fallback_rank: the answer where there is no LOCAL_RANK.

    Raises:
        RuntimeError: neither is there.
    """
    if "LOCAL_RANK" in os.environ:
        return int(os.environ["LOCAL_RANK"])
    if fallback_rank is None:
        text = "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow `get_node_local_rank`"
        refuse(RuntimeError, f"{text} to work where nothing launched this rank")
    return int(fallback_rank)


def get_process_group_ranks(group: Group) -> list[int]:
    """The group's ranks, as global ranks in the group's order; None for the default group.

    Raises:
        ValueError: no default group yet; outside the group (torch gives the ranks of another group then).
    """
    return list(_inside(group).communicator.ranks)


def get_global_rank(group: Group, group_rank: int) -> int:
    """The global rank of a rank of the group.

    Raises:
        ValueError: no such group, or no such rank in it.
    """
    process_group = _required_group(group)
    if process_group is required().whole:
        return group_rank
    if group_rank not in range(process_group.size()):
        refuse(ValueError, f"Group rank {group_rank} is not part of group {process_group}")
    return process_group.communicator.ranks[group_rank]


def get_group_rank(group: Group, global_rank: int) -> int:
    """The rank in the group of a global rank.

    Raises:
        ValueError: no such group, or the rank is not in it.
    """
    rank: int = group_rank_of(_required_group(group), global_rank)
    return rank


def _required_group(group: Group) -> ProcessGroup:
    required()
    return _inside(NON_GROUP_MEMBER if group is None else group)  # None is no group here, as in torch


def _inside(group: Group) -> ProcessGroup:
    process_group = group_of(group)
    if process_group is None:
        refuse(ValueError, f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return process_group
