"""The port: all that calls ask of what carries their data, torch's ProcessGroup on the CPU, on a GPU its NCCL backend.

Another binding of NCCL, for CuPy programs on a torch without CUDA, say, would stand here: a class derived from
torch's ``Backend`` with these methods, made where ``store`` makes NCCL's. Names are those of torch 2.13's ProcessGroup;
``backend`` looks up what backends, and older releases, call three of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol

from torch import Tensor


class PortWork(Protocol):
    """Data on its way."""

    def wait(self, timeout: timedelta = ..., /) -> bool:
        """On the CPU: wait until it is there; RuntimeError where that takes longer, or has failed.

        On a GPU: this thread's stream waits, and the host does not.
        """
        ...

    def is_completed(self) -> bool:
        """Whether it is there, or has failed."""
        ...


class Port(Protocol):
    """One rank's end. Every method but the last two returns the work of data on its way.

    ``options`` have torch's fields: ``reduceOp``, ``rootRank``, a rank in the group. What is given must lie still until
    the work is over. Failing at once is RuntimeError.
    """

    def allreduce(self, tensors: list[Tensor], options: Any, /) -> PortWork:
        """Reduce the one tensor in place."""
        ...

    def allreduce_coalesced(self, tensors: list[Tensor], options: Any, /) -> PortWork:
        """Reduce several tensors in place."""
        ...

    def reduce(self, tensors: list[Tensor], options: Any, /) -> PortWork:
        """Reduce the one tensor in place on the root; the others' may be written to."""
        ...

    def reduce_scatter_single(self, output: Tensor, tensor: Tensor, options: Any, /) -> PortWork:
        """Reduce a tensor whose axis 0 is cut into one part per rank."""
        ...

    def broadcast(self, tensors: list[Tensor], options: Any, /) -> PortWork:
        """Fill the one tensor with the root's."""
        ...

    def allgather(self, lists: list[list[Tensor]], tensors: list[Tensor], options: Any, /) -> PortWork:
        """Fill the one list with all ranks' tensors."""
        ...

    def all_gather_single(self, output: Tensor, tensor: Tensor, options: Any, /) -> PortWork:
        """Fill a tensor with all ranks' ones, end to end."""
        ...

    def gather(self, lists: list[list[Tensor]], tensors: list[Tensor], options: Any, /) -> PortWork:
        """Fill the root's one list; the others' lists are none."""
        ...

    def scatter(self, tensors: list[Tensor], lists: list[list[Tensor]], options: Any, /) -> PortWork:
        """Fill the one tensor from the root's one list; the others' lists are none."""
        ...

    def alltoall(self, outputs: list[Tensor], tensors: list[Tensor], options: Any, /) -> PortWork:
        """Fill each output from the rank of its place."""
        ...

    def all_to_all_single(
        self, output: Tensor, tensor: Tensor, output_sizes: Sequence[int], input_sizes: Sequence[int], options: Any, /
    ) -> PortWork:
        """The same of pieces that lie end to end, of these lengths along axis 0; equal ones where none are given."""
        ...

    def send(self, tensors: list[Tensor], peer: int, tag: int, /) -> PortWork:
        """Send the one tensor; used with NCCL alone."""
        ...

    def recv(self, tensors: list[Tensor], peer: int, tag: int, /) -> PortWork:
        """Fill the one tensor; used with NCCL alone."""
        ...

    def _start_coalescing(self) -> None:
        """What follows starts together, in one launch."""

    def _end_coalescing(self) -> PortWork:
        """It starts; the work of all of it."""
        ...
