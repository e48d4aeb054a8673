"""The interface of a transport, which carries out the planned calls of a group's ranks, and names missing ranks.

There are two: ``threads`` between threads of one process, and ``processes`` between processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from torch import Tensor

from collshim.accelerator import ACCELERATOR
from collshim.arrays import Arrays
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
        size: the number of ranks in the group.
        ranks: those of the group in the world, in the group's order.
        key: the group's name, the same on all its ranks.
        made_at: the line that made a subgroup, which its user closes; "" if the world closes the group.
        pending: this rank's calls that have not been waited for, in all its groups.
        checks: whether the ranks compare their calls before data moves; ``checks_on_cuda``: also those on CUDA tensors.
        counts_writes: whether autograd counts every write to a caller's CPU tensor as a change; gloo's are not counted.
        deferred: calls that failed before they were waited for.
        nccl_options: the options that were passed; None for torch's defaults.
    """

    rank: int
    size: int
    key: str
    made_at: str
    pending: PendingCalls
    checks: bool
    checks_on_cuda: bool
    counts_writes: bool
    deferred: DeferredErrors
    nccl_options: Any

    @property
    def ranks(self) -> Sequence[int]:
        """See above."""
        ...

    def carrier(self, plan: Plan) -> Carrier:
        """Make the transport's part of a new plan."""
        ...

    def start(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None) -> Work[Arrays]:
        """Start a collective on contiguous, detached tensors; the transport allocates ``outputs`` if they are None.

        The work's result is the outputs, in the form passed or in that of ``allocation.allocator``; ``Posting`` decides
        how they reach the caller. ``caller`` is the line of the call, if the ranks exchange lines.
        """
        ...

    def message(self, plan: Plan, inputs: Parts | None, outputs: Parts | None, caller: Caller | None) -> Work[Arrays]:
        """Start a send or a recv; ``plan.call.root`` is its peer, None for a recv from any rank."""
        ...

    def refuse_batch(self, calls: Sequence[Call]) -> None:
        """Raise an error, before any message starts, if these cannot be started together."""

    def together(self) -> AbstractContextManager[None]:
        """Start the sends and receives inside the block together, so that none waits for another."""
        ...

    def split(self, ranks: Sequence[int], key: str) -> Transport | None:
        """Return this rank's end of a smaller group, in the order of ``ranks``; None if it is not in that group."""

    def leave(self, why: str, *, stays: bool = False) -> None:
        """Tell the other ranks that this one makes no further calls; posted ones complete while it ``stays``."""

    def set_nccl_options(self, options: object) -> None:
        """Set the options of torch's ProcessGroupNCCL for connecting the group; raise if it has already been connected.

        Has no effect if NCCL does not carry the group's calls.
        """

    def settle(self) -> None:
        """Wait until the GPU has finished this rank's calls; raise any failure that was not yet reported."""

    def close(self) -> None:
        """Call ``settle``, and leave the group even if it raises; nothing may be started afterwards."""

    def drop(self) -> None:
        """Call ``close`` once all started calls are over, without waiting for that here."""


def compares(transport: Transport, tensor: Tensor) -> bool:
    """Return whether the ranks compare calls on this tensor."""
    return transport.checks_on_cuda if tensor.device.type == ACCELERATOR else transport.checks
