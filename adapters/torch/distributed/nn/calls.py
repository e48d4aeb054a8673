"""Helpers of ``nn.functional``: post a call, warn, and return on a rank outside the group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from collshim.arrays import Array
from collshim.communicator import Communicator
from collshim.layout import listed
from collshim.torch.distributed.arguments import warn
from collshim.torch.distributed.membership import Group, ProcessGroup, group_of, rank_in, warn_outside
from collshim.torch.distributed.posting import submit
from collshim.torch.distributed.work import complete
from collshim.work import Work


def warn_deprecated(name: str, successor: str | None = None) -> None:
    """Issue torch 2.13's warning, at the line of the caller."""
    replacement = f"torch.distributed._functional_collectives.{successor or name}"
    warn(f"torch.distributed.nn.functional.{name} is deprecated, use {replacement} instead.", FutureWarning)


def group_and_root(group: Group, rank: int | None) -> tuple[ProcessGroup | None, int]:
    """Return the group, or None if this rank is outside it, and the rank in the group of a global rank."""
    process_group = group_of(group)
    return process_group, rank_in(process_group, rank, None)


def result_of(process_group: ProcessGroup, call: Callable[[Communicator], Work[Any]]) -> Any:
    """Post a call and wait for its result."""
    return complete(submit(process_group, call), process_group.deadline, None, process_group.order)


def each(stacked: Tensor | None) -> tuple[Tensor, ...] | None:
    """Return one tensor per rank; None stays None."""
    return None if stacked is None else tuple(listed(stacked))


def warn_outside_and_return(function: str, *arrays: Array) -> Array:
    """Warn that this rank is outside the group, and return the first of its arrays."""
    warn_outside(function)
    return arrays[0] if arrays else None
