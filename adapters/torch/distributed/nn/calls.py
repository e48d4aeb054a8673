"""How the functions of ``nn.functional`` post a call, warn, and answer on a rank outside the group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from collshim.arrays import Array
from collshim.communicator import Communicator
from collshim.layout import listed
from collshim.torch.distributed.arguments import warn
from collshim.torch.distributed.membership import Group, ProcessGroup, group_of, outside, rank_in
from collshim.torch.distributed.work import accepted
from collshim.work import Work


def deprecated(name: str, successor: str | None = None) -> None:
    """Torch 2.13's warning, shown where the function was called."""
    instead = f"torch.distributed._functional_collectives.{successor or name}"
    warn(f"torch.distributed.nn.functional.{name} is deprecated, use {instead} instead.", FutureWarning)


def rooted(group: Group, rank: int | None) -> tuple[ProcessGroup | None, int]:
    """The group, None where this rank is outside it, and the rank in it that a global rank has."""
    ranks = group_of(group)
    return ranks, rank_in(ranks, rank, None)


def result_of(ranks: ProcessGroup, call: Callable[[Communicator], Work[Any]]) -> Any:
    """Post a call and wait for its result."""
    return accepted(ranks, call).wait(ranks.deadline)


def each(stacked: Tensor | None) -> tuple[Tensor, ...] | None:
    """One tensor per rank; None stays None."""
    return None if stacked is None else tuple(listed(stacked))


def outside_with(function: str, *given: Array) -> Array:
    """On a rank outside the group: a warning, and what it gave."""
    outside(function)
    return given[0] if given else None
