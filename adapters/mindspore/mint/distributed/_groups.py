"""The world and its groups, with torch's function names. Conventions of MindSpore 2.10.0: a group is its name."""

from __future__ import annotations

import datetime
import hashlib
from typing import Any
from urllib.parse import urlparse

from collshim import world
from collshim.adapting.refusing import refuse
from collshim.log import LOG
from collshim.mindspore._c_expression import GroupOptions
from collshim.mindspore.communication import management
from collshim.mindspore.communication._store import TCPStore
from collshim.mindspore.communication.groups import HCCL_WORLD_COMM_GROUP, GlobalComm, groups, peek_groups
from collshim.mindspore.mint.distributed._arguments import group_of


def init_process_group(
    backend: str = "hccl",
    init_method: str | None = None,
    timeout: Any = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Join this rank's world, which the launcher's variables, ``init_method`` or ``store`` describe.

    Args:
        backend: "hccl", even if there is no such device.
        init_method: "tcp://ip:port", with ``world_size`` and ``rank``.
        store: a TCPStore through which the ranks find each other, with ``world_size`` and ``rank``.
        timeout: has no effect; use ``collshim.options(timeout=...)``. ``pg_options`` and ``device_id`` have no effect
            either.
        group_name: the group that must have ``world_size`` ranks; all ranks by default.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if ``backend`` is unknown; if both ``init_method`` and ``store`` are passed; if ``world_size`` or
            ``rank`` is missing with one of them, or is not the world's.
        RuntimeError: if the URL cannot be parsed ("Failed to parse TCP URL"); if no world can be joined; if the group
            does not exist.
    """
    given = {"init_method": init_method, "timeout": timeout, "world_size": world_size, "rank": rank, "store": store}
    for name, value in {**given, "group_name": group_name}.items():
        if value is not None and not isinstance(value, _KINDS[name]):
            refuse(TypeError, f"The parameter '{name}' must be {_KINDS[name]}, but got {type(value)}")
    if backend != "hccl":
        refuse(ValueError, f"Only support hccl now, please setting backend to hccl, the default, but got {backend!r}")
    if init_method is not None and store is not None:
        refuse(ValueError, "Only one of init_method and store is supported.")
    if init_method is not None or store is not None:
        _join(init_method, store, world_size, rank)
    management.init(backend)
    size = management.get_group_size(group_name or HCCL_WORLD_COMM_GROUP)
    if world_size not in (-1, size):
        refuse(ValueError, f"world_size is wrong: should be {size} or the default value, but got {world_size}")


_KINDS: dict[str, Any] = {
    "init_method": str,
    "timeout": datetime.timedelta,
    "world_size": int,
    "rank": int,
    "store": TCPStore,
    "group_name": str,
}


def _join(init_method: str | None, store: TCPStore | None, size: int, rank: int) -> None:
    """Join this rank's world at an address or through a store, if this rank has no world yet."""
    if size <= 0:
        refuse(ValueError, f"Specified world_size must be a positive integer, but got {size}.")
    if rank < 0:
        refuse(ValueError, f"Specified rank must be a non-negative integer, but got {rank}.")
    address, port = (None, None) if init_method is None else _address(init_method)
    if world.peek() is None:
        meeting = None if store is None else store.for_world()
        world.init(rank, size, address=address, port=port, store=meeting, overrides=store is not None)


def destroy_process_group(group: str | None = None) -> None:
    """Forget this rank's group; None or the world's name forgets all groups, after which ``init`` may be called again.

    If this rank is not initialised, None does nothing.

    Raises:
        TypeError: if ``group`` is not a string.
        KeyError: if this rank has no such group.
        RuntimeError: if this rank is not initialised.
    """
    if group is None and peek_groups() is None:
        return
    state = groups()
    if group in (None, state.world_name, HCCL_WORLD_COMM_GROUP):
        del world.current().state["mindspore"]
        return
    if not isinstance(group, str):
        text = "For 'destroy_group', the argument 'group' must be type of string or None, but got 'group' type : "
        refuse(TypeError, f"{text}{type(group)}.")
    management.destroy_group(group)


def is_available() -> bool:
    """Return True."""
    return True


def is_initialized() -> bool:
    """Return whether this rank has joined its world, and has not left it."""
    return peek_groups() is not None


def new_group(
    ranks: list[int] | None = None,
    timeout: Any = None,
    backend: str | None = None,
    pg_options: GroupOptions | None = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
) -> str:
    """Create a group of these ranks, in ascending order; return its name on the members, and "" on other ranks.

    As in MindSpore, it also returns "" if this rank is not initialised or the world has no such rank.

    Args:
        ranks: global ranks; None means all ranks, whose group already exists.
        timeout: has no effect; neither have ``use_local_synchronization`` and ``group_desc``.
        backend: "hccl" or "mccl", the start of the group's name; None means "hccl".
        pg_options: options for MindSpore's devices; they have no effect here.

    Raises:
        TypeError: if ``ranks`` is not a list, ``backend`` is unknown, or ``pg_options`` is not a ``GroupOptions``.
        ValueError: if a rank occurs twice.
    """
    if ranks is None:
        return GlobalComm.WORLD_COMM_GROUP
    if not isinstance(ranks, list):
        refuse(TypeError, f"ranks must be list, but got {type(ranks)}")
    ordered, prefix = sorted(ranks), "hccl" if backend is None else backend
    if prefix not in ("hccl", "mccl"):
        refuse(TypeError, f"the input backend must be hccl or mccl, but got {backend}")
    if pg_options is not None and not isinstance(pg_options, GroupOptions):
        refuse(TypeError, f"pg_options must be type GroupOptions, but got {type(pg_options)}")
    joined = "_".join(map(str, ordered))
    group = f"{prefix}_{len(ordered)}_{hashlib.sha1(joined.encode(), usedforsecurity=False).hexdigest()}"
    try:
        management.create_group(group, ordered, pg_options)
    except RuntimeError as error:  # not initialised, not a member, or no such rank
        LOG.info("new_group: %s", error)
        return ""
    return group


def get_backend(group: str | None = None) -> str:
    """Return the backend's name: "hccl" for the group of all ranks; otherwise the backend at the start of its name.

    Raises:
        TypeError: if ``group`` is not a string.
    """
    if group is None:
        return "hccl"
    if not isinstance(group, str):
        text = "For 'get_backend', the argument 'group' must be type of string or None, but got 'group' type : "
        refuse(TypeError, f"{text}{type(group)}.")
    return next((name for name in ("hccl", "mccl") if name in group), GlobalComm.BACKEND)


def get_rank(group: str | None = None) -> int:
    """Return this rank's rank in the group; -1 if it has no such group.

    Raises:
        TypeError: if ``group`` is not a string.
    """
    return _number(management.get_rank, group)


def get_world_size(group: str | None = None) -> int:
    """Return the number of ranks in the group; -1 if this rank has no such group.

    Raises:
        TypeError: if ``group`` is not a string.
    """
    return _number(management.get_group_size, group)


def get_process_group_ranks(group: str | None = None) -> list[int]:
    """Return the members' global ranks, in group order.

    Raises:
        TypeError: if ``group`` is not a string.
        RuntimeError: if this rank is not initialised, or the group does not exist.
    """
    return management.get_process_group_ranks(HCCL_WORLD_COMM_GROUP if group is None else group)


def get_global_rank(group: str | None, group_rank: int) -> int:
    """Return the global rank of rank ``group_rank`` in the group.

    Raises:
        TypeError: if ``group`` is not a string, or ``group_rank`` not an int.
        RuntimeError: if this rank is not initialised; if the group does not exist, or has no such rank.
    """
    return management.get_world_rank_from_group_rank(_world_named(group), group_rank)


def get_group_rank(group: str | None, global_rank: int) -> int:
    """Return the rank in the group of global rank ``global_rank``.

    Raises:
        TypeError: if ``group`` is not a string, or ``global_rank`` not an int.
        KeyError: if the group does not exist, or has no such rank.
        RuntimeError: if this rank is not initialised.
    """
    name, state = _world_named(group), groups()
    known = name in (*state.by_name, state.world_name)
    if isinstance(name, str) and isinstance(global_rank, int):
        what = "world_rank_id" if known else "group"
        if not known or global_rank not in group_of(name).ranks:
            start = "For 'get_group_rank_from_world_rank_from_cache', the argument "
            text = f"'{what}' is not found in GROUP_RANKS, 'group' : {name}, 'world_rank_id' : {global_rank}"
            refuse(KeyError, start + text)
    return management.get_group_rank_from_world_rank(global_rank, name)


def _world_named(group: str | None) -> str:
    return GlobalComm.WORLD_COMM_GROUP if group is None or group == HCCL_WORLD_COMM_GROUP else group


def _number(function: Any, group: str | None) -> int:
    try:
        return int(function(HCCL_WORLD_COMM_GROUP if group is None else group))
    except RuntimeError as error:
        LOG.info("%s", error)
        return -1


def _address(init_method: str) -> tuple[str, int]:
    try:
        parsed = urlparse(init_method)
        host, port = parsed.hostname, parsed.port
    except ValueError:  # the port is not a number
        host, port = None, None
    if not init_method.startswith("tcp://") or host is None or port is None:
        refuse(RuntimeError, f"Failed to parse TCP URL from 'init_method': {init_method!r}, should be 'tcp://ip:port'")
    return host, port
