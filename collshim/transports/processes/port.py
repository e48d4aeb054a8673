"""The port: the interface that calls need from the object that carries their data.

That object is torch's ProcessGroup on the CPU, and torch's NCCL backend on a GPU. Another binding of NCCL, such as
one for CuPy programs on a torch without CUDA, would implement the port: a class derived from torch's ``Backend`` with
these methods, made where ``store`` makes NCCL's backend. The names are those of torch 2.13's ProcessGroup; three of
them differ in backends and in older releases, and ``backend`` looks these up.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Protocol, TypeAlias

from torch import Tensor

CallOptions: TypeAlias = Any
"""torch's options of one call, of the collective's own class, such as ``AllreduceOptions``."""


class PortWork(Protocol):
    """The work of a transfer under way."""

    def wait(self, timeout: timedelta = ..., /) -> bool:
        """Wait on the CPU until the data has arrived; raise RuntimeError if the timeout passes or the transfer failed.

        On a GPU, make this thread's stream wait instead; the host does not wait.
        """
        ...

    def is_completed(self) -> bool:
        """Return whether the data has arrived, or the transfer has failed."""
        ...


class Port(Protocol):
    """One rank's end. Every method except ``_start_coalescing`` returns the work of the transfer that it starts.

    ``options`` have torch's fields: ``reduceOp``, and ``rootRank``, a rank in the group. Inputs must not change until
    the work is over. Immediate failures are RuntimeError.
    """

    def allreduce(self, tensors: list[Tensor], options: CallOptions, /) -> PortWork:
        """Reduce the single tensor in place."""
        ...

    def allreduce_coalesced(self, tensors: list[Tensor], options: CallOptions, /) -> PortWork:
        """Reduce several tensors in place."""
        ...

    def reduce(self, tensors: list[Tensor], options: CallOptions, /) -> PortWork:
        """Reduce the single tensor in place on the root; other ranks' tensors can be overwritten."""
        ...

    def reduce_scatter_single(self, output: Tensor, tensor: Tensor, options: CallOptions, /) -> PortWork:
        """Reduce a tensor whose axis 0 is cut into one part per rank."""
        ...

    def broadcast(self, tensors: list[Tensor], options: CallOptions, /) -> PortWork:
        """Fill the single tensor with the root's."""
        ...

    def allgather(self, lists: list[list[Tensor]], tensors: list[Tensor], options: CallOptions, /) -> PortWork:
        """Fill the single list with all ranks' tensors."""
        ...

    def all_gather_single(self, output: Tensor, tensor: Tensor, options: CallOptions, /) -> PortWork:
        """Fill a tensor with all ranks' tensors, end to end."""
        ...

    def gather(self, lists: list[list[Tensor]], tensors: list[Tensor], options: CallOptions, /) -> PortWork:
        """Fill the root's single list; the other ranks pass no list."""
        ...

    def scatter(self, tensors: list[Tensor], lists: list[list[Tensor]], options: CallOptions, /) -> PortWork:
        """Fill the single tensor from the root's single list; the other ranks pass no list."""
        ...

    def alltoall(self, outputs: list[Tensor], tensors: list[Tensor], options: CallOptions, /) -> PortWork:
        """Fill each output from the rank of its index."""
        ...

    def all_to_all_single(
        self,
        output: Tensor,
        tensor: Tensor,
        output_sizes: Sequence[int],
        input_sizes: Sequence[int],
        options: CallOptions,
        /,
    ) -> PortWork:
        """Exchange pieces that lie end to end, with these lengths along axis 0, or equal ones if none are passed."""
        ...

    def send(self, tensors: list[Tensor], peer: int, tag: int, /) -> PortWork:
        """Send the single tensor; used only with NCCL."""
        ...

    def recv(self, tensors: list[Tensor], peer: int, tag: int, /) -> PortWork:
        """Fill the single tensor; used only with NCCL."""
        ...

    def _start_coalescing(self) -> None:
        """Hold back the calls that follow, to start together in one launch."""

    def _end_coalescing(self) -> PortWork:
        """Start the calls that were held back; return one work for all of them."""
        ...
