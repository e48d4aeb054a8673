"""init_process_group, destroy_process_group, is_initialized, is_available. Conventions of torch 2.13.0.

Where ``collshim.launch`` or another adapter has made this rank's world, ``init_process_group`` joins it; else it makes
the process's world by one of the methods env://, tcp://, file://, a store, or what
``register_rendezvous_handler`` knows, or by torch's default group where there is one and no method is given.

Where ranks are processes torch's own ``torch.distributed`` has the same default group, so that unmodified modules such
as DistributedDataParallel find it; a default group that torch has already stays as it is.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NoReturn

import torch
from torch.distributed import rendezvous

from collshim import world
from collshim.adapting.refusing import refuse
from collshim.errors import WorldError, also
from collshim.settings import get as current_options
from collshim.torch.distributed.arguments import seconds
from collshim.torch.distributed.backends import backend_named, default_backend
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
    required,
)
from collshim.torch.distributed.options import give_options, required_options


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
    """This rank has a default group of all ranks of its world, which is joined or else made.

    Args:
        backend: a backend's name; it is what ``get_backend`` returns. CUDA tensors travel by NCCL, others by gloo, and
            among ranks that are threads both are read directly, whatever is named.
        init_method: a URL; "env://" by default. Ignored where this rank has a world already.
        timeout: how long a wait may take; None for ``collshim.options``' (torch: 30 minutes).
        world_size, rank: how many ranks there are, and which one this is; -1 where the method or the world says. They
            hold against WORLD_SIZE and RANK of the environment.
        store: a torch store that all ranks reach, instead of ``init_method``; with ``world_size`` and ``rank``.
        pg_options: a ``ProcessGroupNCCL.Options``, such as a stream of high priority and ``config.max_ctas``: what NCCL
            connects the ranks with at the first call on CUDA tensors. They have no effect for a single rank, which
            needs no NCCL, and for ranks that are threads. The timeout among them is overridden, as in torch.
        group_name, device_id, _ranks: accepted; ``device_id`` chooses the backend if none is named.

    Raises:
        ValueError: a second time without ``destroy_process_group``; the method lacks something; ``rank`` or
            ``world_size`` contradicts this rank's world, both of which the text shows; ``pg_options`` where NCCL has
            connected the ranks of this rank's world already, with others.
        AssertionError: ``store`` with ``init_method``, or without size and rank; no such backend; ``pg_options`` of
            another class, those of gloo say.
        TypeError: ``timeout`` is no timedelta, ``store`` no store.
        RuntimeError: the ranks do not find each other.
    """
    dismiss_stale_default()
    if is_initialized():
        refuse(ValueError, "trying to initialize the default process group twice!")
    _require_one_method(init_method, store, rank, world_size)
    _require_device(device_id)
    required_options(pg_options, timeout)
    name = default_backend(device_id) if backend is None else backend_named(backend)
    deadline = seconds(timeout)
    current_world, is_new = world.peek(), False
    if current_world is None:
        current_world, is_new = _new_world(init_method, store, rank, world_size, deadline), True
    else:
        _require_agreement(current_world, rank, world_size)
    give_options(current_world.communicator, pg_options)
    enter_default(current_world, name, deadline, world.close if is_new else None)


def destroy_process_group(group: Group = None) -> None:
    """The group is no more; with None, or the default group, all groups, and the world where it was made for them.

    Nothing happens for a group that this rank is not in.

    Raises:
        AssertionError: no default group yet.
        ValueError: no such group, or destroyed before.
    """
    if isinstance(group, int) and group == NON_GROUP_MEMBER:
        return
    state = membership()
    if group is None and state is None:
        refuse(AssertionError, "Process group cannot be None: there is no default group to destroy")
    if group is not None and (state is None or not is_registered(state, group)):
        refuse(ValueError, f"Invalid process group specified: {group!r}")
    _leave(required(), group)


def is_initialized() -> bool:
    """Whether this rank has a default group; asking makes no world."""
    dismiss_stale_default()
    return membership() is not None


def is_available() -> bool:
    """Whether torch was built with its distributed package, whose stores and names are used here."""
    return bool(torch.distributed.is_available())


def _leave(state: Membership, group: Group) -> None:
    process_group = state.default if group is None else state.known(group)
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
    """An accelerator that is there, with its number."""
    if device_id is None:
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
    """Refuse arguments that contradict the world that this rank has already."""
    if rank not in (-1, current_world.rank):
        _contradicts("rank", rank, current_world.rank, f"in {current_world}")
    if world_size not in (-1, current_world.size):
        _contradicts("world_size", world_size, current_world.size, f"in {current_world}")


def _contradicts(what: str, argument: int, value: object, place: str) -> NoReturn:
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
    """The store of torch's default group, which rank this is in it, and its size."""
    place = torch.distributed.get_rank(), torch.distributed.get_world_size()
    for what, argument, value in zip(("rank", "world_size"), (rank, size), place, strict=True):
        if argument not in (-1, value):
            _contradicts(what, argument, value, "in torch's default process group")
    return torch.distributed.distributed_c10d._get_default_store(), *place


def _rendezvous(init_method: str, rank: int, size: int, deadline: float | None) -> tuple[Any, int, int]:
    """The store that the ranks share, and which rank this is; torch's rendezvous knows the methods."""
    limit = timedelta(seconds=current_options().timeout if deadline is None else deadline)
    try:
        store, rank, size = next(rendezvous(init_method, rank, size, timeout=limit))
    except (AssertionError, RuntimeError, ValueError) as error:
        exception = also(WorldError, type(error))
        raise exception(f"init_process_group: {error}") from error
    return store, rank, size
