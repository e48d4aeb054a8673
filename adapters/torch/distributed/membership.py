"""This rank's process groups: what a group is, which ones there are, and what is said where this rank is in none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

from collshim.communicator import Communicator
from collshim.errors import WorldError, also
from collshim.torch.distributed.arguments import refuse
from collshim.world import peek

NON_GROUP_MEMBER = -100
_STATE = "torch.distributed"


class ProcessGroup:
    """An ordered group of ranks; the default group's are all ranks, the others are made by ``new_group``.

    Of torch's methods it has those that ask; the collectives are the functions of ``torch.distributed``.

    Attributes:
        communicator: the engine's communicator of these ranks.
        deadline: seconds that a wait may take; None for the communicator's own.
        backend: the backend's name, as it was given.
        group_name: a name that is the same on every rank of the group; "0" for the default group.
        group_desc: the description that was given.
    """

    def __init__(
        self, communicator: Communicator, backend: str, name: str, desc: str | None, deadline: float | None
    ) -> None:
        self.communicator = communicator
        self.deadline = deadline
        self.backend = backend
        self.group_name = name
        self.group_desc = desc or "undefined"

    def __repr__(self) -> str:
        ranks = list(self.communicator.ranks)
        return f"<ProcessGroup {self.group_name}: rank {self.rank()} of {self.size()}, global ranks {ranks}>"

    def rank(self) -> int:
        """This rank in the group."""
        return self.communicator.rank

    def size(self) -> int:
        """How many ranks the group has."""
        return self.communicator.size

    def name(self) -> str:
        """The backend's name."""
        return self.backend


Group: TypeAlias = "ProcessGroup | int | None"
"""What ``group=`` takes: a group, None for the default one, -100 for one that this rank is not in."""


class Membership:
    """What a rank keeps between ``init_process_group`` and ``destroy_process_group``.

    Attributes:
        default: the group of all ranks.
        groups: every group that this rank is in.
        leave: what destroys the world, where ``init_process_group`` made it.
    """

    def __init__(self, default: ProcessGroup, leave: Callable[[], None] | None) -> None:
        self.default = default
        self.groups = {default}
        self.leave = leave


def membership() -> Membership | None:
    """This rank's; None before ``init_process_group``."""
    world = peek()
    return None if world is None else world.state.get(_STATE)


def enter(membership: Membership | None) -> None:
    """Remember this rank's membership, or with None that it has none."""
    world = peek()
    if world is None:
        return
    if membership is None:
        world.state.pop(_STATE, None)
    else:
        world.state[_STATE] = membership


def required() -> Membership:
    """This rank's membership; an error before ``init_process_group``."""
    found = membership()
    if found is None:
        raise also(WorldError, ValueError)(
            "Default process group has not been initialized, please make sure to call init_process_group."
        )
    return found


def group_of(group: Group) -> ProcessGroup | None:
    """The group that is meant; None where this rank is outside it."""
    if isinstance(group, int) and group == NON_GROUP_MEMBER:
        return None
    found = required()
    if group is None:
        return found.default
    if not isinstance(group, ProcessGroup) or group not in found.groups:
        refuse(ValueError, f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return group


def is_registered(membership: Membership, group: Any) -> bool:
    """Whether ``group`` is one of this rank's live groups."""
    return isinstance(group, ProcessGroup) and group in membership.groups


def outside(function: str, stacklevel: int = 3) -> None:
    """Warn that this rank is outside the group, so that ``function`` does nothing on it."""
    found = membership()
    rank = -1 if found is None else found.default.rank()
    text = f"Running {function} on global rank {rank} which does not belong to the given group."
    warnings.warn(text, stacklevel=stacklevel)


def rank_in(group: ProcessGroup | None, global_rank: Any, group_rank: Any) -> Any:
    """The rank in the group that one of the two says; 0 where this rank is outside the group."""
    if global_rank is not None and group_rank is not None:
        refuse(ValueError, "Can't specify both group_rank and global_rank")
    if global_rank is None and group_rank is None:
        refuse(ValueError, "Must specify global_rank or group_rank")
    if group is None:
        return 0
    return group_rank if group_rank is not None else group_rank_of(group, global_rank)


def group_rank_of(group: ProcessGroup, global_rank: Any) -> Any:
    """A global rank's rank in the group; in the default group they are the same, and judged by the engine."""
    if group is required().default:
        return global_rank
    if global_rank not in group.communicator.ranks:
        refuse(ValueError, f"Global rank {global_rank} is not part of group {group}")
    return group.communicator.ranks.index(global_rank)
