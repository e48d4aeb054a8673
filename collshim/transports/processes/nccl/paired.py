"""torch 2.15's newer engine for NCCL, with a separate communicator for each pair of ranks that exchange messages.

Its ProcessGroup has one communicator, which all ranks of the group must make together, so a message would wait for
ranks that have nothing to do with it. torch's own solution, ProcessGroupNCCLLazy, names the communicators by a counter
in each process, so two ranks that have made different numbers of them do not find each other.
"""

from __future__ import annotations

from typing import Any

import torch.distributed as dist
from torch import Tensor
from torch.distributed import PrefixStore, Store

from collshim.transports.processes.nccl.options import copied

_Engine: Any = getattr(dist, "ProcessGroupNCCL2", object)


class PairedNccl(_Engine):  # type: ignore[misc]  # its class is torch's, if there is one
    """NCCL's ProcessGroup; its messages use communicators of two ranks, except those of a batch, which use its own."""

    def __init__(self, store: Store, rank: int, size: int, options: Any) -> None:
        super().__init__(store, rank, size, options)
        self._store = store
        self._pairs = dict[int, Any]()
        self._is_batch = False

    def send(self, tensors: list[Tensor], peer: int, tag: int) -> Any:
        """See ``Port``."""
        if self._is_batch:
            return super().send(tensors, peer, tag)
        return self._pair(peer).send(tensors, int(peer > self.rank()), tag)

    def recv(self, tensors: list[Tensor], peer: int, tag: int) -> Any:
        """See ``Port``."""
        if self._is_batch:
            return super().recv(tensors, peer, tag)
        return self._pair(peer).recv(tensors, int(peer > self.rank()), tag)

    def _start_coalescing(self) -> None:
        super()._start_coalescing()
        self._is_batch = True

    def _end_coalescing(self) -> Any:
        self._is_batch = False
        return super()._end_coalescing()

    def abort(self) -> None:
        """Abort every communicator, except one that is still being made: the engine would then end the process."""
        for pair in list(self._pairs.values()):
            if pair._comm_ptr():
                pair.abort()
        if self._comm_ptr():
            super().abort()

    def shutdown(self) -> None:
        """End every communicator, once its calls are over."""
        for pair in list(self._pairs.values()):
            pair.shutdown()
        super().shutdown()

    def _pair(self, peer: int) -> Any:
        if peer not in self._pairs:
            low, high = sorted((self.rank(), peer))
            name = f"{low}-{high}"
            own = self.options
            ranks = [own.global_ranks_in_group[rank] for rank in (low, high)]
            options = copied(own, f"{own.group_name}/{name}", ranks)
            self._pairs[peer] = _Engine(PrefixStore(name, self._store), int(peer < self.rank()), 2, options)
        return self._pairs[peer]
