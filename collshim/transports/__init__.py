"""What a transport must do: carry one described call of a group's ranks, and say who is missing.

Two transports do it: ``local`` between threads of one process, ``process_group`` between processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import torch
from torch import Tensor

from collshim.call import Call
from collshim.layout import Parts
from collshim.transports.plain import Express
from collshim.work import Pending


class Posted(Pending, Protocol):
    """A posted call; ``token`` is set by the autograd rules."""

    token: Tensor | None

    @property
    def joint(self) -> bool:
        """Whether some rank needs a gradient, once the wait is over; False where the ranks did not tell each other."""
        ...


class Transport(Protocol):
    """One rank's end of one group.

    Attributes:
        rank: this rank in the group.
        size: how many ranks the group has.
        checks: whether the ranks compare their calls before data moves.
    """

    rank: int
    size: int
    checks: bool

    @property
    def express(self) -> Express | None:
        """The short way for plain arrays, where there is one now."""
        ...

    def post(self, call: Call, inputs: Parts | None, outputs: Parts | None, device: torch.device) -> Posted:
        """Post a call on contiguous, detached tensors; ``outputs`` None where the transport shall allocate.

        A ``recv`` has ``call.root`` None for any source. What ``wait`` returns are the outputs, in the form given
        or that of ``outputs.allocate``.
        """
        ...

    def together(self) -> AbstractContextManager[None]:
        """Sends and receives posted inside set out at once, none waits for another."""
        ...

    def subgroup(self, ranks: Sequence[int], key: str) -> Transport | None:
        """The end of a smaller group, in the order of ``ranks``; None where this rank is not in it."""

    def announce_leaving(self, why: str) -> None:
        """Tell the other ranks that this one comes to no further call."""

    def close(self) -> None:
        """Leave the group; nothing may be posted afterwards."""
