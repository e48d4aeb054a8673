"""The backend ``collshim``: groups of torch's own ``torch.distributed`` whose calls the engine runs.

``import collshim.torch.distributed`` registers it; then ``torch.distributed.init_process_group(backend="collshim")``
makes the process's world, or joins the existing one, and both modules have the same default group. torch's default
timeout has no effect: the deadline of a wait then comes from ``collshim.options``.
"""

from __future__ import annotations

import inspect
import socket
import threading
import weakref
from collections.abc import Callable, Container
from contextlib import ExitStack
from datetime import timedelta
from typing import Any
from urllib.parse import urlparse

import torch
import torch.distributed
from torch.distributed import Backend, PrefixStore, TCPStore, default_pg_timeout

from collshim import world
from collshim.errors import WorldError
from collshim.torch.distributed.c10d import builtin_hooks
from collshim.torch.distributed.c10d.adoption import adopt
from collshim.torch.distributed.c10d.group import CollectiveGroup
from collshim.torch.distributed.c10d.thread_ranks import keep_record, leave_record, restore, restore_excepthook
from collshim.torch.distributed.membership import Membership, ProcessGroup, enter, membership
from collshim.torch.distributed.options import give_options, require_options

NAME = "collshim"

_DEFAULTS = "torch.distributed.defaults"
"""The key in ``World.state`` of the number of torch's default groups before the latest one."""

_pending = threading.local()
"""The existing group that the backend returns when torch next calls it."""

_groups_of_torch: weakref.WeakSet[CollectiveGroup] = weakref.WeakSet()
"""The groups that the backend has returned to torch."""


def register() -> None:
    """Register the backend with torch for CPU tensors, and CUDA tensors if there are GPUs; may be called again.

    From torch 2.14 on, torch itself calls this through the entry point, if collshim has not been imported yet.
    """
    if NAME not in Backend.backend_list:
        devices = ["cpu", "cuda"] if torch.cuda.device_count() else ["cpu"]  # torch takes the last one for its buffers
        Backend.register_backend(NAME, _create_group, extended_api=True, devices=devices)
        builtin_hooks.install()


def enter_default(
    current_world: world.World, backend: str, deadline: float | None, leave: Callable[[], None] | None
) -> None:
    """Create this rank's default group, over all ranks of its world, and register it with torch too.

    ``leave`` ends the world, if the world was made for the group.
    """
    group = _default_over(current_world, backend, "0", deadline, leave)
    if current_world.store is None:  # a part of a world
        return
    if current_world.is_thread:
        keep_record(current_world)
    if torch.distributed.is_initialized():  # torch keeps a group of another backend
        return
    init = torch.distributed.init_process_group
    try:
        store = _torchs_store(current_world)
        _make_in_torch(group, lambda: init(NAME, store=store, rank=current_world.rank, world_size=current_world.size))
    except BaseException:
        dismiss(group)
        raise
    finally:
        if current_world.is_thread:
            restore_excepthook()


def _torchs_store(current_world: world.World) -> PrefixStore:
    """Return the part of the world's store for torch's groups, in which backends leave addresses for each group."""
    number = current_world.state[_DEFAULTS] = current_world.state.get(_DEFAULTS, -1) + 1
    return PrefixStore(f"torch{number}", current_world.store)


def introduce(group: CollectiveGroup) -> None:
    """Make ``group`` known to torch's modules as one of torch's own."""
    current_world, ranks = world.peek(), list(group.communicator.ranks)
    if current_world is None or current_world.store is None or not torch.distributed.is_initialized():
        return
    order: dict[str, Any] = {} if ranks == sorted(ranks) else {"sort_ranks": False}
    if not order.keys() <= inspect.signature(torch.distributed.new_group).parameters.keys():
        return  # torch's groups were always sorted before 2.13
    desc = group.group_desc
    new_group = torch.distributed.new_group
    _make_in_torch(
        group, lambda: new_group(ranks, backend=NAME, use_local_synchronization=True, group_desc=desc, **order)
    )


def dismiss(group: ProcessGroup) -> None:
    """Leave the group, and make torch forget it; if it is torch's default group, also forget all other groups."""
    try:
        group.shutdown()  # here and not in torch, which would keep the groups if this raises
    finally:
        if group in _torch_groups():
            torch.distributed.destroy_process_group(group)
        if group.is_whole:
            restore()


def dismiss_stale_default() -> None:
    """Forget a default group that only one side has left.

    Either torch has the group of a collshim world that has ended without ``destroy_process_group``, or collshim has a
    group that torch has destroyed without notice, as torch 2.6 does.
    """
    state = membership()
    if state is not None and state.whole in _groups_of_torch and state.whole not in _torch_groups():
        state.whole.shutdown()
    if torch.distributed.is_initialized() and isinstance(torch.distributed.group.WORLD, CollectiveGroup):
        current_world = world.peek()
        if current_world is None or torch.distributed.group.WORLD.communicator is not current_world.communicator:
            torch.distributed.destroy_process_group()


def _torch_groups() -> Container[object]:
    """Return torch's registry of groups."""
    groups: Container[object] = torch.distributed.distributed_c10d._world.pg_map
    return groups


def address_of(store: Any, init_method: str | None = None) -> str:
    """Return the master's address (loopback keeps gloo off other interfaces); for a file store, this host's name."""
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    if isinstance(store, TCPStore):
        return store.host
    return urlparse(init_method or "").hostname or socket.gethostname()


def _make_in_torch(group: CollectiveGroup, make: Callable[[], object]) -> None:
    _pending.group = group
    try:
        make()
    finally:
        _pending.group = None


def _create_group(options: Any, backend_options: Any) -> CollectiveGroup:
    """Return the pending group, or make a new one; torch calls this to make a group."""
    group: CollectiveGroup | None = getattr(_pending, "group", None)
    if group is None:
        require_options(backend_options, options.timeout)
        ranks = list(options.global_ranks_in_group)
        group = _part(options, ranks) if ranks else _default(options)
        give_options(group.communicator, backend_options)
    _groups_of_torch.add(group)
    return group


def _default(options: Any) -> CollectiveGroup:
    dismiss_stale_default()
    deadline = _deadline(options.timeout)
    current_world, leave, place = world.peek(), None, (options.group_rank, options.group_size)
    if current_world is None:
        address = address_of(options.store)
        current_world = world.init(*place, store=options.store, address=address, timeout=deadline, overrides=True)
        leave = world.close
    elif current_world.is_thread:
        raise WorldError(
            "a rank that is a thread has no default group in torch.distributed before it calls "
            f"collshim.torch.distributed.init_process_group (rank {current_world.rank} of {current_world.size})"
        )
    elif (current_world.rank, current_world.size) != place:
        arguments = f"rank {place[0]} of {place[1]}"
        raise WorldError(
            f"init_process_group: this is {arguments} as an argument and in {current_world}, should be the same"
        )
    return _default_over(current_world, NAME, options.group_id, deadline, leave)


def _default_over(
    current_world: world.World, backend: str, name: str, deadline: float | None, leave: Callable[[], None] | None
) -> CollectiveGroup:
    group = CollectiveGroup(current_world.communicator, backend, name, "default_pg", deadline)
    state = Membership(group, leave, adopt)
    group.set_leave(lambda: _leave_all(state))
    enter(state)
    return group


def _part(options: Any, ranks: list[int]) -> CollectiveGroup:
    current_world, state = world.peek(), membership()
    if current_world is None or current_world.store is None or state is None:
        raise WorldError(
            "a group of the backend collshim needs a default group of it: call collshim.torch.distributed."
            "init_process_group, or torch.distributed.init_process_group(backend='collshim'), on all ranks"
        )
    part = current_world.communicator.subgroup(ranks, kept=True)
    if part is None:
        raise WorldError(f"rank {current_world.rank} is not among the new group's, {ranks}")
    return state.add(CollectiveGroup(part, NAME, options.group_id, None, _deadline(options.timeout)))


def _deadline(timeout: timedelta) -> float | None:
    return None if timeout == default_pg_timeout else timeout.total_seconds()


def _leave_all(state: Membership) -> None:
    """Leave the default group and all other groups, even if leaving one of them raises an error."""
    with ExitStack() as others:
        others.callback(state.leave or state.whole.communicator.settle)
        others.callback(enter, None)
        others.callback(leave_record, world.peek())
        for group in state.groups - {state.whole}:
            others.callback(dismiss, group)
