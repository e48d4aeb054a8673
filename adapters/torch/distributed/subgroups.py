"""new_subgroups, new_subgroups_by_enumeration, split_group: several groups at once. Conventions of torch 2.13.0."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import torch

from collshim.adapting.refusing import refuse
from collshim.torch.distributed.arguments import seconds
from collshim.torch.distributed.backends import device_backends
from collshim.torch.distributed.groups import (
    get_process_group_ranks,
    get_rank,
    get_world_size,
    new_group,
    register_group,
)
from collshim.torch.distributed.membership import Group, ProcessGroup, group_of
from collshim.torch.distributed.options import give_options, require_options


def new_subgroups(
    group_size: int | None = None,
    group: Group = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup | None, list[Group]]:
    """Divide a group's ranks into groups of ``group_size``, in order; every rank of the world calls this.

    Args:
        group_size: the number of ranks per group; None for the number of this machine's CUDA devices.
        group: the group to divide; None for all ranks. Every rank divides the group that it is in.
        timeout, backend, pg_options, group_desc: as for ``new_group``.

    Returns:
        The group that this rank is in, and a list of all groups, which has -100 for each group that this rank is not
        in.

    Raises:
        ValueError: the size is not positive, is larger than the group, or does not divide it; no size is passed and
            CUDA is not available; the default group is not initialized.
    """
    if group_size is None:
        if not torch.cuda.is_available():
            refuse(ValueError, "Default group size only takes effect when CUDA is available: pass in 'group_size'")
        group_size = torch.cuda.device_count()
    if group_size <= 0:
        refuse(ValueError, f"The arg 'group_size' ({group_size}) must be positive")
    size = get_world_size(group)
    if size < group_size:
        refuse(ValueError, f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})")
    if size % group_size != 0:
        refuse(ValueError, f"The world size ({size}) must be divisible by 'group_size={group_size}'")
    ranks = get_process_group_ranks(group)
    parts = [ranks[start : start + group_size] for start in range(0, size, group_size)]
    return new_subgroups_by_enumeration(parts, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[ProcessGroup | None, list[Group]]:
    """Make a group for each list of global ranks; every rank calls this, and may be in one group or none.

    Args:
        ranks_per_subgroup_list: the global ranks of each group.
        timeout, backend, pg_options, group_desc: as for ``new_group``.

    Returns:
        The group that this rank is in, or None, and a list of all groups, which has -100 for each group that this rank
        is not in.

    Raises:
        ValueError: there is no list; a rank is in two lists; as for ``new_group``. It is raised before any group is
            made.
    """
    if ranks_per_subgroup_list is None or len(ranks_per_subgroup_list) == 0:
        refuse(ValueError, "The arg 'ranks_per_subgroup_list' cannot be empty")
    _require_apart(ranks_per_subgroup_list)
    own_group, groups = None, []
    for ranks in ranks_per_subgroup_list:
        subgroup = new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        groups.append(subgroup)
        if get_rank() in ranks and isinstance(subgroup, ProcessGroup):
            own_group = subgroup
    return own_group, groups


def split_group(
    parent_pg: Group = None,
    split_ranks: list[list[int]] | None = None,
    timeout: timedelta | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:
    """Split a group, and return the part that this rank is in, as a group; every rank of the parent calls this.

    Torch 2.13 supports this only over NCCL; here it is available with every backend's name, and needs no device.

    Args:
        parent_pg: the group to split; None for all ranks.
        split_ranks: for each part, its ranks in the parent. Parts must not overlap; the ranks of a part keep the
            parent's order.
        timeout: how long a wait may take; None for the parent's timeout.
        pg_options: as for ``new_group``; None for the parent's options.
        group_desc: a description for people.
        backend: which of the parent's backends to keep, such as "cpu:gloo"; None for all.

    Returns:
        The group; None on a rank that is not in any part.

    Raises:
        ValueError: there are no parts; a part is empty; a rank occurs twice or is out of range; this rank is not in the
            parent; the parent does not have the backend; the default group is not initialized.
        TypeError: ``timeout`` is not a timedelta.
        AssertionError: ``pg_options`` is of another class.
    """
    require_options(pg_options, timeout)
    if not split_ranks:
        refuse(ValueError, "split_ranks cannot be None or empty")
    parent = group_of(parent_pg)
    if parent is None:
        refuse(ValueError, f"Group {parent_pg} is not registered: this rank is not part of the parent group")
    _require_parts(split_ranks, parent.size())
    name = parent.backend if backend is None else _select_backends(parent.backend, backend)
    deadline = parent.deadline if timeout is None else seconds(timeout)
    part = next((sorted(ranks) for ranks in split_ranks if parent.rank() in ranks), None)
    communicator = None if part is None else parent.communicator.subgroup(part)
    if communicator is None:
        return None
    give_options(communicator, parent.communicator.nccl_options if pg_options is None else pg_options)
    return register_group(communicator, name, group_desc or f"{parent.group_desc}:split", deadline)


def _require_apart(parts: Sequence[Sequence[int]]) -> None:
    subgroups: dict[int, Sequence[int]] = {}
    for ranks in parts:
        for rank in ranks:
            if rank in subgroups and subgroups[rank] is not ranks:
                refuse(ValueError, f"Rank {rank} has appeared in both subgroup {subgroups[rank]} and {ranks}")
            subgroups[rank] = ranks


def _require_parts(parts: list[list[int]], size: int) -> None:
    for ranks in parts:
        if len(ranks) == 0:
            refuse(ValueError, "the split group cannot be empty")
        if len(ranks) > size:
            refuse(ValueError, f"the split group's size should be less or equal to the world_size {size}")
        if len(ranks) != len(set(ranks)):
            refuse(ValueError, "the split group cannot have duplicate ranks")
        for rank in ranks:
            if rank not in range(size):
                refuse(ValueError, f"Rank {rank} is out of range. Valid ranks are 0 to {size - 1} (of the parent)")
    _require_apart(parts)


def _select_backends(parent: str, backend: str) -> str:
    """Return ``backend`` in lower case; refuse it unless the parent has each of its devices with that backend."""
    parent_backends = device_backends(parent)
    for device, name in device_backends(backend).items():
        if device not in parent_backends:
            refuse(
                ValueError, f"Requested backend for device '{device}' is not present in the parent: {parent_backends}"
            )
        if parent_backends[device] != name:
            text = f"Backend mismatch for device '{device}': parent has '{parent_backends[device]}', requested '{name}'"
            refuse(ValueError, text)
    return backend.lower()
