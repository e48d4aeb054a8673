"""torch's own groups, of any backend, as groups of this rank: ``group=`` accepts them, and the engine runs calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch.distributed

from collshim.communicator import Communicator
from collshim.torch.distributed.c10d.group import CollectiveGroup
from collshim.torch.distributed.membership import Membership, ProcessGroup


class LateCommunicator:
    """A communicator that is made when its ranks first need it; its members are known before that, without a wait."""

    def __init__(self, whole: Communicator, ranks: Sequence[int]) -> None:
        self._whole = whole
        self._communicator: Communicator | None = None
        self.ranks = tuple(ranks)
        self.rank = self.ranks.index(whole.rank)
        self.size = len(self.ranks)

    def __getattr__(self, name: str) -> Any:
        if self._communicator is None:
            self._communicator = self._whole.subgroup(self.ranks, kept=True)
        return getattr(self._communicator, name)

    def close(self) -> None:
        """Leave the group, if the communicator was made."""
        if self._communicator is not None:
            self._communicator.close()


def adopt(state: Membership, torch_group: Any) -> ProcessGroup | None:
    """Return a group of this rank over the ranks of torch's group; None if ``torch_group`` is none of torch's."""
    if not isinstance(torch_group, torch.distributed.ProcessGroup) or not torch.distributed.is_initialized():
        return None
    if torch_group is torch.distributed.group.WORLD:
        return state.whole
    if torch_group not in torch.distributed.distributed_c10d._world.pg_map:
        return None
    ranks = torch.distributed.get_process_group_ranks(torch_group)
    communicator: Any = LateCommunicator(state.whole.communicator, ranks)
    backend, deadline = torch.distributed.get_backend(torch_group), state.whole.deadline
    return CollectiveGroup(communicator, backend, torch_group.group_name, torch_group.group_desc, deadline)
