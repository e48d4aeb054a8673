"""Groups of torch's own, of any backend, as groups of this rank: ``group=`` takes them, over the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.distributed

from collshim.communicator import Communicator
from collshim.torch.distributed.c10d.group import CollectiveGroup
from collshim.torch.distributed.membership import Membership, ProcessGroup


class LateCommunicator:
    """A communicator that its ranks make when they first need it; to ask who is in it nobody waits for the others."""

    def __init__(self, whole: Communicator, ranks: Sequence[int]) -> None:
        self._whole = whole
        self._made: Communicator | None = None
        self.ranks = tuple(ranks)
        self.rank = self.ranks.index(whole.rank)
        self.size = len(self.ranks)

    def __getattr__(self, name: str) -> Any:
        if self._made is None:
            self._made = self._whole.subgroup(self.ranks)
        return getattr(self._made, name)

    def close(self) -> None:
        """Leave the group, where it was made."""
        if self._made is not None:
            self._made.close()


def adopt(entered: Membership, theirs: Any) -> ProcessGroup | None:
    """This rank's group of the ranks that a group of torch's has; None for what is no group of torch's."""
    if not isinstance(theirs, torch.distributed.ProcessGroup) or not torch.distributed.is_initialized():
        return None
    if theirs is torch.distributed.group.WORLD:
        return entered.whole
    if theirs not in torch.distributed.distributed_c10d._world.pg_map:
        return None
    ranks = torch.distributed.get_process_group_ranks(theirs)
    communicator: Any = LateCommunicator(entered.whole.communicator, ranks)
    backend, deadline = torch.distributed.get_backend(theirs), entered.whole.deadline
    return CollectiveGroup(communicator, backend, theirs.group_name, theirs.group_desc, deadline)
