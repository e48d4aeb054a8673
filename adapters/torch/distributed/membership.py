"""This rank's process groups: their class, which ones there are, and the errors outside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias, TypeVar

import torch.distributed

from collshim.adapting.refusing import refuse
from collshim.communicator import Communicator
from collshim.errors import WorldError, also
from collshim.torch.distributed.arguments import warn
from collshim.torch.distributed.order import Order
from collshim.world import no_rank_here, peek

NON_GROUP_MEMBER = -100
STATE = "torch.distributed"

_OF_TORCH = (
    " torch.distributed has a default group, which a library may have made: call collshim.torch.distributed."
    "init_process_group on every rank to use its ranks, or run the program with `collshim run --as torch`."
)


_TorchsGroup: Any = torch.distributed.ProcessGroup  # its stubs have overloads that a method in Python cannot follow


class ProcessGroup(_TorchsGroup):  # type: ignore[misc]
    """An ordered group of ranks; the default group has all ranks, and ``new_group`` makes others.

    Attributes:
        communicator: the engine's communicator of these ranks.
        deadline: how many seconds a wait may take; None for the communicator's own limit.
        backend: the backend's name, as passed.
        posted: the number of calls posted on the group.
        is_whole: whether it is the group of all ranks, whose ranks are global ranks.
        order: the collectives posted with a Work that have not been waited for yet.
        held: the calls that an open ``_coalescing_manager`` holds back; None if there is no open one.
    """

    def __init__(
        self, communicator: Communicator, backend: str, name: str, desc: str | None, deadline: float | None
    ) -> None:
        super().__init__(communicator.rank, communicator.size)
        self.communicator = communicator
        self.deadline = deadline
        self.backend = backend
        self.posted = 0
        self.is_whole = False
        self.held: Any = None
        self.order = Order()
        self._name = name
        self._desc = desc or "undefined"
        self._leave: Callable[[], None] | None = None

    @property
    def group_name(self) -> str:
        """A name that is the same on every rank of the group."""
        return self._name

    @property
    def group_desc(self) -> str:
        """The description passed to ``new_group``; "undefined" without one."""
        return self._desc

    def __repr__(self) -> str:
        ranks = list(self.communicator.ranks)
        return f"<ProcessGroup {self.group_name}: rank {self.rank()} of {self.size()}, global ranks {ranks}>"

    def name(self) -> str:
        """Return the backend's name."""
        return self.backend

    def set_leave(self, leave: Callable[[], None]) -> None:
        """Set the function that ``shutdown`` calls."""
        self._leave = leave

    def shutdown(self) -> None:
        """Leave the group, at the first call; torch's ``destroy_process_group`` calls this too."""
        leave, self._leave = self._leave, None
        try:
            if leave is not None:
                leave()
        finally:
            self.order.clear()  # it holds the tensors of works that were not waited for


Group: TypeAlias = "torch.distributed.ProcessGroup | int | None"
"""The type of ``group=``: a group, even torch's own; None for the default group; -100 for a group without this rank."""

G = TypeVar("G", bound=ProcessGroup)


class Membership:
    """A rank's groups between ``init_process_group`` and ``destroy_process_group``.

    Attributes:
        whole: the group of all ranks.
        default: the group of calls that pass no group: ``whole``, unless ``group.WORLD`` was set to a different one.
        others: the ranks of the last group that was made without this rank; None if there is no such group yet.
        groups: every group that this rank is in.
        made: how many groups were made, with or without this rank.
        leave: destroys the world, if ``init_process_group`` made it.

    ``adopt`` makes one of torch's own groups a group of this rank.
    """

    def __init__(
        self,
        default: ProcessGroup,
        leave: Callable[[], None] | None,
        adopt: Callable[[Membership, Any], ProcessGroup | None],
    ) -> None:
        self.whole = self.default = default
        default.is_whole = True
        self.others: list[int] | None = None
        self.groups = {default}
        self.made = 1
        self.leave = leave
        self._adopt = adopt
        self._adopted: dict[Any, ProcessGroup] = {}

    def add(self, group: G) -> G:
        """Add a group that this rank is in until it is shut down, and return it."""
        self.groups.add(group)
        group.set_leave(lambda: self._remove(group))
        return group

    def find(self, group: Any) -> ProcessGroup | None:
        """Return this rank's group for ``group``, which may be torch's own; None if ``group`` is not a live group."""
        if isinstance(group, ProcessGroup) and group in self.groups:
            return group
        if not isinstance(group, torch.distributed.ProcessGroup):
            return None
        process_group = self._adopted.get(group) or self._adopt(self, group)
        if process_group is not None and process_group not in self.groups:
            self._adopted[group] = self.add(process_group)
        return process_group

    def forget(self, torch_group: Any) -> None:
        """Leave the group that was adopted from one of torch's own groups, which is being destroyed."""
        process_group = self._adopted.pop(torch_group, None)
        if process_group is not None:
            process_group.shutdown()

    def _remove(self, group: ProcessGroup) -> None:
        self.groups.discard(group)
        group.communicator.close()


def membership() -> Membership | None:
    """Return this rank's membership; None before ``init_process_group``."""
    world = peek()
    return None if world is None else world.state.get(STATE)


def enter(membership: Membership | None) -> None:
    """Set this rank's membership; None removes it."""
    world = peek()
    if world is None:
        return
    if membership is None:
        world.state.pop(STATE, None)
    else:
        world.state[STATE] = membership


def require_membership() -> Membership:
    """Return this rank's membership; raise an error before ``init_process_group``."""
    state = membership()
    if state is None:
        error = no_rank_here() or (
            "Default process group has not been initialized, please make sure to call init_process_group."
            + (_OF_TORCH if torch.distributed.is_initialized() else "")
        )
        raise also(WorldError, ValueError)(str(error))
    return state


def group_of(group: Group) -> ProcessGroup | None:
    """Return the ``ProcessGroup`` for ``group=``; None if this rank is outside it."""
    if group is None:
        state = membership()
        return require_membership().default if state is None else state.default
    if isinstance(group, int) and group == NON_GROUP_MEMBER:
        return None
    state = require_membership()
    process_group = state.find(group)
    if process_group is None:
        refuse(ValueError, f"Group {group} is not registered, please create group with torch.distributed.new_group API")
    return process_group


def is_registered(membership: Membership, group: Any) -> bool:
    """Return whether ``group`` is one of this rank's live groups, or one of torch's own groups."""
    return membership.find(group) is not None


def warn_outside(function: str) -> None:
    """Warn that ``function`` does nothing because this rank is outside the group."""
    state = membership()
    rank = -1 if state is None else state.whole.rank()
    warn(f"Running {function} on global rank {rank} which does not belong to the given group.")


def rank_in(group: ProcessGroup | None, global_rank: Any, group_rank: Any) -> Any:
    """Return the rank in the group from a global rank or a rank in the group; 0 if this rank is outside the group."""
    if global_rank is not None and group_rank is not None:
        refuse(ValueError, "Can't specify both group_rank and global_rank")
    if global_rank is None and group_rank is None:
        refuse(ValueError, "Must specify global_rank or group_rank")
    if group is None:
        _require_among_others(global_rank)
        return 0
    return group_rank if group_rank is not None else group_rank_of(group, global_rank)


def refuse_outside() -> NoReturn:
    """Raise torch's error if this rank is outside the group, for functions that do not only warn."""
    refuse(ValueError, f"Invalid process group specified: this rank is outside it, {NON_GROUP_MEMBER}")


def _require_among_others(global_rank: Any) -> None:
    """Validate a global rank outside the group against the last group made without this rank, as in torch."""
    state = membership()
    others = None if state is None else state.others
    if global_rank is not None and others is not None and global_rank not in others:
        text = f"Invalid process group specified: Global rank {global_rank} is not part of group {NON_GROUP_MEMBER}"
        refuse(ValueError, f"{text}, {others}")


def group_rank_of(group: ProcessGroup, global_rank: Any) -> Any:
    """Return a global rank's rank in the group; in the group of all ranks the engine validates it."""
    if group.is_whole:
        return global_rank
    if global_rank not in group.communicator.ranks:
        refuse(ValueError, f"Global rank {global_rank} is not part of group {group}")
    return group.communicator.ranks.index(global_rank)
