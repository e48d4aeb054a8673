"""``mindspore.communication.management``: init, ranks, groups. Conventions of MindSpore 2.10.0."""

from __future__ import annotations

import os

import torch

from collshim import world
from collshim.adapting.devices import tell_of_cpu
from collshim.adapting.refusing import refuse
from collshim.errors import ArgumentError, also
from collshim.mindspore._c_expression import GroupOptions
from collshim.mindspore.communication.arguments import require_int, require_name, require_ranks, require_same
from collshim.mindspore.communication.groups import (
    HCCL_WORLD_COMM_GROUP,
    MCCL_WORLD_COMM_GROUP,
    NCCL_WORLD_COMM_GROUP,
    GlobalComm,
    Group,
    Groups,
    find_group,
    groups,
    peek_groups,
    resolve_group,
)
from collshim.mindspore.context import get_context
from collshim.world import World

__all__ = [
    "HCCL_WORLD_COMM_GROUP",
    "MCCL_WORLD_COMM_GROUP",
    "NCCL_WORLD_COMM_GROUP",
    "GlobalComm",
    "create_group",
    "destroy_group",
    "get_comm_name",
    "get_group_rank_from_world_rank",
    "get_group_size",
    "get_local_rank",
    "get_local_rank_size",
    "get_process_group_ranks",
    "get_rank",
    "get_world_rank_from_group_rank",
    "init",
    "is_initialized",
    "release",
]
_BACKENDS = ("hccl", "nccl", "mccl")


def init(backend_name: str | None = None) -> None:
    """Join this rank's world; afterwards every function of this package works.

    Another call only changes the backend's name.

    Args:
        backend_name: "hccl", "nccl" or "mccl", for ``GlobalComm.BACKEND``. None chooses "hccl" or "nccl" if
            ``set_context`` named Ascend or GPU, "nccl" if torch sees a GPU, else "mccl".

    Raises:
        TypeError: if the name is not a string.
        RuntimeError: if there is no backend of that name, or no world can be joined.
    """
    backend = _backend(backend_name)
    state = _join_world().state.setdefault("mindspore", Groups(backend))
    state.backend = backend


def release() -> None:
    """Forget this rank's created groups, if it is initialised. The world stays up, and ``get_rank`` still works."""
    state = peek_groups()
    if state is not None:
        state.by_name.clear()


def is_initialized() -> bool:
    """Return whether ``init`` was called on this rank."""
    return peek_groups() is not None


def get_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return this rank's rank in ``group``, from 0.

    Before ``init`` it is the launcher's: RANK_ID or RANK, and 0 without a launcher.

    Raises:
        TypeError: if ``group`` is not a string.
        RuntimeError: if this rank has no such group.
    """
    require_name("get_rank", group)
    if peek_groups() is None:
        return _number_before_init("rank", 0, "RANK_ID", "RANK")
    return resolve_group(group).communicator.rank


def get_group_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the number of ranks in ``group``; before ``init`` the launcher's RANK_SIZE or WORLD_SIZE, or 1.

    Raises:
        TypeError: if ``group`` is not a string.
        RuntimeError: if this rank has no such group.
    """
    require_name("get_group_size", group)
    if peek_groups() is None:
        return _number_before_init("size", 1, "RANK_SIZE", "WORLD_SIZE")
    return resolve_group(group).communicator.size


def get_local_rank(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return this rank's rank among the members of ``group`` on its machine; before ``init`` LOCAL_RANK, or 0.

    Raises:
        TypeError: if ``group`` is not a string.
        RuntimeError: if this rank has no such group.
    """
    require_name("get_local_rank", group)
    if peek_groups() is None:
        return _number_before_init("local_rank", 0, "LOCAL_RANK")
    return _neighbours(resolve_group(group)).index(world.current().rank)


def get_local_rank_size(group: str = HCCL_WORLD_COMM_GROUP) -> int:
    """Return the number of members of ``group`` on this rank's machine; before ``init`` LOCAL_RANK_SIZE, or 1.

    Raises:
        TypeError: if ``group`` is not a string.
        RuntimeError: if this rank has no such group.
    """
    require_name("get_local_rank_size", group)
    if peek_groups() is None:
        return _number_before_init("local_size", 1, "LOCAL_RANK_SIZE", "LOCAL_WORLD_SIZE")
    return len(_neighbours(resolve_group(group)))


def get_world_rank_from_group_rank(group: str, group_rank_id: int) -> int:
    """Return the global rank of rank ``group_rank_id`` of ``group``. ``"hccl_world_group"`` is not an alias here.

    Raises:
        TypeError: if ``group`` is not a string, or ``group_rank_id`` not an int from 0 on.
        RuntimeError: if this rank is not initialised, the group does not exist, or it has no such rank ("Group x
            doesn't contain the group rank r").
    """
    require_name("get_world_rank_from_group_rank", group)
    require_int("get_world_rank_from_group_rank", "group_rank_id", group_rank_id)
    members = find_group(group).ranks
    if not 0 <= group_rank_id < len(members):
        refuse(RuntimeError, f"Group {group} doesn't contain the group rank {group_rank_id}")
    return members[group_rank_id]


def get_group_rank_from_world_rank(world_rank_id: int, group: str) -> int:
    """Return the rank in ``group`` of global rank ``world_rank_id``. ``"hccl_world_group"`` is not an alias here.

    Raises:
        TypeError: if ``world_rank_id`` is not an int from 0 on, or ``group`` not a string.
        RuntimeError: if this rank is not initialised, the group does not exist, or it has no such rank ("Group x
            doesn't contain the global rank r").
    """
    require_int("get_group_rank_from_world_rank", "world_rank_id", world_rank_id)
    require_name("get_group_rank_from_world_rank", group)
    members = find_group(group).ranks
    if world_rank_id not in members:
        refuse(RuntimeError, f"Group {group} doesn't contain the global rank {world_rank_id}")
    return members.index(world_rank_id)


def get_process_group_ranks(group: str = HCCL_WORLD_COMM_GROUP) -> list[int]:
    """Return the global ranks of ``group``'s members, in group order.

    Raises:
        TypeError: if ``group`` is not a string.
        RuntimeError: if this rank is not initialised, or is not in the group ("Group x doesn't include this rank r
            process.").
    """
    require_name("get_process_group_ranks", group)
    state = groups()
    if group not in (*state.by_name, state.world_name, HCCL_WORLD_COMM_GROUP):
        refuse(RuntimeError, f"Group {group} doesn't include this rank {world.current().rank} process.")
    return list(resolve_group(group).ranks)


def get_comm_name(group: str = HCCL_WORLD_COMM_GROUP) -> str:
    """Return the name of the HCCL communicator of ``group``: empty, as on MindSpore's CPU, which has no HCCL.

    Raises:
        TypeError: if ``group`` is not a string.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    require_name("get_comm_name", group)
    resolve_group(group)
    return ""


def create_group(group: str, rank_ids: list[int], options: GroupOptions | None = None) -> None:
    """Create a group of that name on this rank, whose ranks have the order of ``rank_ids``.

    All members call this, and no other rank. Another call with the same list does nothing.

    Args:
        group: the group's name.
        rank_ids: the members' global ranks; one rank is enough.
        options: for MindSpore's devices; without effect here.

    Raises:
        TypeError: if ``group`` is not a string, ``rank_ids`` not a list of ints from 0 on, or ``options`` not a
            ``GroupOptions``.
        ValueError: if the list is empty, has a rank twice, or differs from the list of an existing group of that name.
        RuntimeError: if this rank is not initialised, or is not a member; if the world has no such rank.
    """
    require_name("create_group", group)
    state = groups()
    if group in state.by_name:
        return require_same(state.by_name[group], rank_ids)
    require_ranks(group, rank_ids, options)
    comm = world.current().communicator
    failed = f"Failed to create communication group for {group} with rank ids {rank_ids}: "
    if not all(0 <= rank < comm.size for rank in rank_ids):
        refuse(RuntimeError, f"{failed}ranks are from 0 to {comm.size - 1}")
    communicator = comm.subgroup(rank_ids, kept=True)
    if communicator is None:
        refuse(RuntimeError, f"{failed}only members call create_group, rank {comm.rank} is not one")
    state.by_name[group] = Group(group, list(rank_ids), communicator)


def destroy_group(group: str) -> None:
    """Forget this rank's group of that name.

    Raises:
        TypeError: if ``group`` is not a string.
        ValueError: if it is the group of all ranks.
        KeyError: if this rank has no such group.
        RuntimeError: if this rank is not initialised.
    """
    require_name("destroy_group", group)
    state = groups()
    if group in (state.world_name, HCCL_WORLD_COMM_GROUP):
        refuse(ValueError, "The world_group does not support destruction.")
    if group not in state.by_name:
        raise also(ArgumentError, KeyError)(group)
    del state.by_name[group]


def _backend(name: object) -> str:
    if name is None:
        target = get_context("device_target")
        name = {"Ascend": "hccl", "GPU": "nccl"}.get(target, "nccl" if torch.cuda.is_available() else "mccl")
    if not isinstance(name, str):
        text = "For 'init', the argument 'backend_name' must be a string, but got the type : "
        refuse(TypeError, f"{text}{type(name)}")
    if name not in _BACKENDS:
        text = "For 'init', the argument 'backend_name' must be one of 'hccl', 'nccl' and 'mccl', but got "
        refuse(RuntimeError, f"{text}'backend_name' : {name}")
    if name != "mccl":
        tell_of_cpu("mindspore")
    return name


def _join_world() -> World:
    """Join this rank's world, using MindSpore's environment variables if only they are set."""
    environment = os.environ
    if world.peek() is not None or "RANK" in environment or not {"RANK_ID", "RANK_SIZE"} <= environment.keys():
        return world.current()
    port = environment.get("MS_SCHED_PORT")
    address = environment.get("MS_SCHED_HOST")
    return world.init(
        int(environment["RANK_ID"]), int(environment["RANK_SIZE"]), address=address, port=int(port) if port else None
    )


def _number_before_init(attribute: str, default: int, *variables: str) -> int:
    """Return one of this rank's numbers before ``init``: from its world, or from the launcher's variables."""
    current_world = world.peek()
    if current_world is not None:
        return int(getattr(current_world, attribute))
    return next((int(os.environ[name]) for name in variables if name in os.environ), default)


def _neighbours(group: Group) -> list[int]:
    """Return the group's members on this rank's machine, in group order.

    Each machine has the same number of consecutive ranks.
    """
    current_world = world.current()
    return [
        rank
        for rank in group.ranks
        if rank // current_world.local_size == current_world.rank // current_world.local_size
    ]
