"""What a transport must do: carry the planned calls of a group's ranks, and name the missing ranks.

Two transports do it: ``threads`` between threads of one process, ``processes`` between processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from torch import Tensor

from collshim.accelerator import ACCELERATOR
from collshim.calls.call import Call
from collshim.calls.pending import PendingCalls
from collshim.calls.plan import Carrier, Plan
from collshim.calls.site import Caller
from collshim.layout import Parts
from collshim.work import DeferredErrors, Work


class Transport(Protocol):
    """One rank's end of one group.

    Attributes:
        rank: this rank in the group.
        size: how many ranks the group has.
        key: the group's name, the same on all its ranks.
        made_at: where a subgroup was made, whose user closes it; "" where that is for the world to do.
        pending: this rank's calls that were not waited for, in whatever group.
        checks: whether the ranks compare their calls before data moves; ``checks_on_cuda``: those on CUDA tensors too.
        deferred: calls that failed before they were waited for.
        nccl_options: those that were given; None for torch's defaults.
    """

    rank: int
    size: int
    key: str
    made_at: str
    pending: PendingCalls
    checks: bool
    checks_on_cuda: bool
    deferred: DeferredErrors
    nccl_options: Any

    def carrier(self, plan: Plan) -> Carrier:
        """Make the transport's part of a new plan."""
        ...

    def start(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None) -> Work[Any]:
        """Start a collective on contiguous, detached tensors; ``outputs`` None where the transport shall allocate.

        What the work gives are the outputs, in the form given or that of ``allocation.allocator``; ``Posting`` sets how
        they reach the caller. ``caller`` is where the call was made, where the ranks exchange that.
        """
        ...

    def message(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None) -> Work[Any]:
        """Start a send, or a recv, whose ``plan.call.root`` is its peer; None for a recv from any rank."""
        ...

    def refuse_batch(self, calls: Sequence[Call]) -> None:
        """Refuse messages that cannot be started together, before one of them is."""

    def together(self) -> AbstractContextManager[None]:
        """Sends and receives started inside start together, none waits for another."""
        ...

    def split(self, ranks: Sequence[int], key: str) -> Transport | None:
        """The end of a smaller group, in the order of ``ranks``; None where this rank is not in it."""

    def leave(self, why: str, *, stays: bool = False) -> None:
        """Tell the other ranks that this one makes no further call; posted ones complete while it ``stays``."""

    def set_nccl_options(self, options: Any) -> None:
        """Let NCCL connect the group with the options of torch's ProcessGroupNCCL; refuse them if it has already.

        Without effect if NCCL does not carry the group's calls.
        """

    def settle(self) -> None:
        """Wait until the GPU is done with this rank's calls; raise a failure that the program was not told of."""

    def close(self) -> None:
        """``settle``, and leave the group in any case; nothing may be started afterwards."""

    def drop(self) -> None:
        """``close``, once what was started is over, without waiting for it."""


def compares(transport: Transport, tensor: Tensor) -> bool:
    """Check whether the ranks compare a call on such a tensor."""
    return transport.checks_on_cuda if tensor.device.type == ACCELERATOR else transport.checks
