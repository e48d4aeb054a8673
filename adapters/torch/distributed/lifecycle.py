"""init_process_group, destroy_process_group, is_initialized, is_available. Conventions of torch 2.13.0.

If ``collshim.launch`` or another adapter has made this rank's world, ``init_process_group`` joins it. Otherwise it
makes the process's world from env://, tcp://, file://, a store, or a method that was registered with
``register_rendezvous_handler``. If no method is passed and torch has a default group, it uses that group's store.

If ranks are processes, torch's own ``torch.distributed`` has the same default group, so that unmodified modules such as
DistributedDataParallel find it. If torch already has a default group, that group stays unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NoReturn
from urllib.parse import urlparse

import torch
from torch.distributed import rendezvous

from collshim import world
from collshim.adapting import devices
from collshim.adapting.refusing import refuse
from collshim.environment import AGENT, has_launchers_store
from collshim.errors import WorldError, also
from collshim.settings import get as current_options
from collshim.torch.distributed.arguments import seconds
from collshim.torch.distributed.backends import default_backend, normalize_backend
from collshim.torch.distributed.c10d.backend import (
    address_of,
    dismiss,
    dismiss_stale_default,
    enter_default,
)
from collshim.torch.distributed.membership import (
    NON_GROUP_MEMBER,
    Group,
    Membership,
    is_registered,
    membership,
    require_membership,
)
from collshim.torch.distributed.options import give_options, require_options


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
) -> None:
    """Create this rank's default group, of all ranks of its world, which this joins or makes.

    Args:
        backend: a backend's name, which ``get_backend`` returns. With any backend, NCCL carries CUDA tensors and gloo
            carries all others; ranks that are threads read both directly.
        init_method: a URL; "env://" by default. Ignored if this rank already has a world.
        timeout: how long a wait may take; None for the timeout of ``collshim.options`` (torch: 30 minutes).
        world_size, rank: the number of ranks, and this rank; -1 if the method or the world specifies them. They
            override WORLD_SIZE and RANK in the environment.
        store: a torch store that all ranks can reach, instead of ``init_method``; requires ``world_size`` and
            ``rank``.
        pg_options: a ``ProcessGroupNCCL.Options``, for example with a high-priority stream or ``config.max_ctas``. NCCL
            connects the ranks with it at the first call on CUDA tensors. It has no effect for a single rank, which
            needs no NCCL, or for ranks that are threads. Its timeout is overridden, as in torch.
        group_name, device_id, _ranks: accepted; ``device_id`` chooses the backend if none is named.

    Raises:
        ValueError: there already is a default group; the method lacks something; ``rank`` or ``world_size`` contradicts
            this rank's world (the error shows both); NCCL has already connected the ranks of this rank's world, with
            other ``pg_options``.
        AssertionError: ``store`` is passed with ``init_method``, or without ``world_size`` and ``rank``; there is no
            such backend; ``pg_options`` is of another class, such as gloo's.
        TypeError: ``timeout`` is not a timedelta, or ``store`` not a store.
        RuntimeError: the ranks do not find each other.
    """
    dismiss_stale_default()
    if is_initialized():
        refuse(ValueError, "trying to initialize the default process group twice!")
    _require_one_method(init_method, store, rank, world_size)
    _require_device(device_id)
    require_options(pg_options, timeout)
    name = default_backend(device_id) if backend is None else normalize_backend(backend)
    deadline = seconds(timeout)
    current_world, is_new = world.peek(), False
    if current_world is None:
        current_world, is_new = _new_world(init_method, store, rank, world_size, deadline), True
    else:
        _require_agreement(current_world, rank, world_size)
    give_options(current_world.communicator, pg_options)
    enter_default(current_world, name, deadline, world.close if is_new else None)


def destroy_process_group(group: Group = None) -> None:
    """Destroy a group; for None or the default group, destroy all groups, and the world if it was made for them.

    If this rank is outside the group, nothing happens.

    Raises:
        AssertionError: the default group is not initialized.
        ValueError: there is no such group, or it was destroyed before.
    """
    if isinstance(group, int) and group == NON_GROUP_MEMBER:
        return
    state = membership()
    if group is None and state is None:
        refuse(AssertionError, "Process group cannot be None: there is no default group to destroy")
    if group is not None and (state is None or not is_registered(state, group)):
        refuse(ValueError, f"Invalid process group specified: {group!r}")
    _leave(require_membership(), group)


def is_initialized() -> bool:
    """Return whether this rank has a default group, without making a world."""
    dismiss_stale_default()
    return membership() is not None


def is_available() -> bool:
    """Return whether torch was built with its distributed package, whose stores and names are used here."""
    return bool(torch.distributed.is_available())


def _leave(state: Membership, group: Group) -> None:
    process_group = state.default if group is None else state.find(group)
    if process_group is None:
        return
    if process_group is state.default:
        dismiss(state.whole)
    elif process_group is not group and isinstance(group, torch.distributed.ProcessGroup):  # torch's own
        state.forget(group)
        torch.distributed.destroy_process_group(group)
    else:
        dismiss(process_group)


def _require_one_method(init_method: Any, store: Any, rank: int, world_size: int) -> None:
    if store is None:
        return
    if init_method is not None:
        refuse(AssertionError, "Cannot specify both init_method and store.")
    if not world_size > 0:
        refuse(AssertionError, f"world_size must be positive if using store, got {world_size}")
    if not rank >= 0:
        refuse(AssertionError, f"rank must be non-negative if using store, got {rank}")
    if not isinstance(store, torch.distributed.Store):
        refuse(
            TypeError, f"incompatible constructor arguments: store is {store!r}, should be a torch.distributed.Store"
        )


def _require_device(device_id: Any) -> None:
    """Refuse a ``device_id`` that is not an available accelerator with an index."""
    if device_id is None or devices.is_pretended():
        return
    if isinstance(device_id, torch.device) and device_id.type == "cpu":
        refuse(ValueError, f"device_id parameter must be an accelerator with an index, got {device_id}")
    count = torch.cuda.device_count()
    if not count:
        refuse(ValueError, f"device_id is {device_id}, but no accelerator support is found")
    index = device_id if isinstance(device_id, int) else torch.device(device_id).index
    if index is None or not 0 <= index < count:
        refuse(ValueError, f"device_id is {device_id}, should have an index from 0 to {count - 1}")


def _require_agreement(current_world: world.World, rank: int, world_size: int) -> None:
    """Refuse arguments that contradict the world that this rank already has."""
    if rank not in (-1, current_world.rank):
        _refuse_contradiction("rank", rank, current_world.rank, f"in {current_world}")
    if world_size not in (-1, current_world.size):
        _refuse_contradiction("world_size", world_size, current_world.size, f"in {current_world}")


def _refuse_contradiction(what: str, argument: int, value: object, place: str) -> NoReturn:
    raise also(WorldError, ValueError)(
        f"init_process_group: {what} is {argument} as an argument and {value} {place}, should be the same"
    )


def _new_world(init_method: Any, store: Any, rank: int, size: int, deadline: float | None) -> world.World:
    world.refuse_thread_ranks()
    if store is None and init_method is None and torch.distributed.is_initialized():
        store, rank, size = _from_torch(rank, size)
    if store is None:
        store, rank, size = _rendezvous(init_method or "env://", rank, size, deadline)
    address = address_of(store, init_method)
    return world.init(rank, size, store=store, address=address, timeout=deadline, overrides=True)


def _from_torch(rank: int, size: int) -> tuple[Any, int, int]:
    """Return the store of torch's default group, this rank in it, and its size."""
    place = torch.distributed.get_rank(), torch.distributed.get_world_size()
    for what, argument, value in zip(("rank", "world_size"), (rank, size), place, strict=True):
        if argument not in (-1, value):
            _refuse_contradiction(what, argument, value, "in torch's default process group")
    return torch.distributed.distributed_c10d._get_default_store(), *place


def _rendezvous(init_method: str, rank: int, size: int, deadline: float | None) -> tuple[Any, int, int]:
    """Return the store that the ranks share, this rank and their number, from torch's rendezvous."""
    limit = timedelta(seconds=current_options().timeout if deadline is None else deadline)
    try:
        with _own_store(init_method):
            store, rank, size = next(rendezvous(init_method, rank, size, timeout=limit))
    except (AssertionError, RuntimeError, ValueError) as error:
        exception = also(WorldError, type(error))
        raise exception(f"init_process_group: {error}") from error
    return store, rank, size


@contextmanager
def _own_store(init_method: str) -> Iterator[None]:
    """Let rank 0 start the store in the block if the method's address is not that of the launcher's store.

    A script that ``collshim run`` started may start ranks of its own, as with ``torch.multiprocessing.spawn``.
    """
    url, environment = urlparse(init_method), os.environ
    is_env, given = url.scheme == "env", environment.get(AGENT)
    host = environment.get("MASTER_ADDR", "") if is_env else url.hostname or ""
    port = environment.get("MASTER_PORT", "") if is_env else url.port or ""
    if url.scheme not in ("env", "tcp") or given is None or has_launchers_store(environment, host, port):
        yield
        return
    environment[AGENT] = "False"
    try:
        yield
    finally:
        environment[AGENT] = given
