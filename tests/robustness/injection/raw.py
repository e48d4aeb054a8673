"""Raw torch.distributed over gloo with the names of a communicator, for the calls that both have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist

_OPS = {"sum": dist.ReduceOp.SUM, "max": dist.ReduceOp.MAX, "min": dist.ReduceOp.MIN}


class RawWork:
    """torch's work, and the call's result."""

    def __init__(self, work: Any, result: Callable[[], Any]) -> None:
        self._work = work
        self._result = result

    def wait(self) -> Any:
        """Return the call's result, once it is over."""
        if self._work is not None:
            self._work.wait()
        return self._result()


class RawCommunicator:
    """A group of torch's; ``ranks`` are the world's."""

    def __init__(self, group: Any, ranks: Sequence[int], seconds: float) -> None:
        self.group = group
        self.ranks = tuple(ranks)
        self.size = len(self.ranks)
        self.rank = self.ranks.index(dist.get_rank())
        self._seconds = seconds

    def all_reduce(self, array: Tensor, op: str = "sum") -> RawWork:
        result = array.clone()
        return RawWork(dist.all_reduce(result, _OPS[op], self.group, async_op=True), lambda: result)

    def reduce(self, array: Tensor, root: int) -> RawWork:
        result = array.clone()
        work = dist.reduce(result, self.ranks[root], group=self.group, async_op=True)
        return RawWork(work, lambda: result if self.rank == root else None)

    def broadcast(self, array: Tensor, root: int) -> RawWork:
        result = array.clone()
        return RawWork(dist.broadcast(result, self.ranks[root], self.group, async_op=True), lambda: result)

    def all_gather(self, array: Tensor) -> RawWork:
        parts = [torch.empty_like(array) for _ in self.ranks]
        return RawWork(dist.all_gather(parts, array, self.group, async_op=True), lambda: torch.stack(parts))

    def gather(self, array: Tensor, root: int) -> RawWork:
        parts = [torch.empty_like(array) for _ in self.ranks] if self.rank == root else None
        work = dist.gather(array, parts, self.ranks[root], self.group, async_op=True)
        return RawWork(work, lambda: None if parts is None else torch.stack(parts))

    def scatter(self, parts: Tensor | None, root: int, like: Tensor | None = None) -> RawWork:
        given = None if parts is None else list(parts)
        result = torch.empty_like(like) if like is not None else torch.empty_like((given or [])[0])
        work = dist.scatter(result, given, self.ranks[root], self.group, async_op=True)
        return RawWork(work, lambda: result)

    def barrier(self) -> RawWork:
        return RawWork(dist.barrier(self.group, async_op=True), lambda: None)

    def all_gather_object(self, value: Any) -> RawWork:
        found: list[Any] = [None] * self.size
        dist.all_gather_object(found, value, self.group)
        return RawWork(None, lambda: found)

    def send(self, array: Tensor, to: int, tag: int) -> RawWork:
        return RawWork(dist.isend(array, self.ranks[to], self.group, tag), lambda: None)

    def recv(self, source: int, *, like: Tensor, tag: int) -> RawWork:
        result = torch.empty_like(like)
        return RawWork(dist.irecv(result, self.ranks[source], self.group, tag), lambda: result)

    def subgroup(self, ranks: Sequence[int]) -> RawCommunicator | None:
        """Follow torch's own rule: every rank of the world calls it, and the group has its ranks in ascending order."""
        group = dist.new_group(sorted(ranks), timedelta(seconds=self._seconds), "gloo")
        return RawCommunicator(group, sorted(ranks), self._seconds) if dist.get_rank() in ranks else None

    def close(self) -> None:
        dist.destroy_process_group(self.group)


def join_world(rank: int, size: int, host: str, port: int, *, serves: bool, seconds: float) -> RawCommunicator:
    """Join the world, and return its communicator."""
    store = dist.TCPStore(host, port, None, serves, timedelta(seconds=seconds), wait_for_workers=False)
    dist.init_process_group("gloo", timeout=timedelta(seconds=seconds), world_size=size, rank=rank, store=store)
    return RawCommunicator(dist.group.WORLD, range(size), seconds)
