"""What is measured, on one rank: the same collective through the engine, a bare ProcessGroup and torch.distributed."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist

import collshim
from collshim.communicator import Communicator

Contender = Callable[[], Any]
Figures = dict[str, tuple[float, float]]

NUMBERS = {"4 B": 1, "4 KB": 1 << 10, "64 KB": 1 << 14, "1 MB": 1 << 18, "16 MB": 1 << 22, "64 MB": 1 << 24}
"""float32 elements per rank by the size that a table names."""


def rounds(numbers: int) -> int:
    """How often a collective of this many elements is repeated."""
    return max(5, min(400, 20_000_000 // max(numbers, 20_000)))


def interleaved(contenders: dict[str, Contender], repeats: int) -> Figures:
    """Median and tenth percentile in microseconds; the contenders take turns, so what disturbs one disturbs all."""
    for contender in contenders.values():
        contender()
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(repeats):
        for name, contender in contenders.items():
            start = time.perf_counter()
            contender()
            times[name].append((time.perf_counter() - start) * 1e6)
    return {name: (statistics.median(found), _tenth(found)) for name, found in times.items()}


def _tenth(found: list[float]) -> float:
    return sorted(found)[len(found) // 10]


def engine(comm: Communicator, op: str, numbers: int, kind: str = "torch") -> Contender:
    """One collective of the engine, waited for at once."""
    x: Any = torch.ones(numbers) if kind == "torch" else np.ones(numbers, np.float32)
    if op == "all_reduce":
        return lambda: comm.all_reduce(x, out=x).wait()
    if op == "broadcast":
        return lambda: comm.broadcast(x, out=x).wait()
    parts: Any = torch.ones(comm.size, max(1, numbers // comm.size)) if op == "all_to_all" else x
    out: Any = torch.empty((comm.size, numbers)) if kind == "torch" else np.empty((comm.size, numbers), np.float32)
    if op == "all_to_all":
        into = torch.empty_like(parts)
        return lambda: comm.all_to_all(parts, out=into).wait()
    return lambda: comm.all_gather(x, out=out).wait()


def torch_distributed(op: str, numbers: int, size: int) -> Contender:
    """The same through ``torch.distributed``'s default group."""
    x, out = torch.ones(numbers), torch.empty(size * numbers)
    parts = torch.ones(max(1, numbers // size) * size)
    into = torch.empty_like(parts)
    gather: Any = getattr(dist, "all_gather_single", dist.all_gather_into_tensor)
    calls: dict[str, Contender] = {
        "all_reduce": lambda: dist.all_reduce(x),
        "broadcast": lambda: dist.broadcast(x, 0),
        "all_gather": lambda: gather(out, x),
        "all_to_all": lambda: dist.all_to_all_single(into, parts),
    }
    return calls[op]


def among_threads(op: str, numbers: int, kind: str) -> Figures:
    """One rank of a world of threads."""
    comm = collshim.current().communicator
    return interleaved({"engine": engine(comm, op, numbers, kind)}, rounds(numbers))


def among_processes(op: str, sizes: tuple[int, ...]) -> dict[int, Figures]:
    """One rank of a world of processes: the engine with and without the check, and torch.distributed, in turns."""
    world = collshim.current()
    checked = world.communicator
    with collshim.options(check=False):
        unchecked = _unchecked(checked)
    store = dist.TCPStore(_env("MASTER_ADDR"), int(_env("MASTER_PORT")), timeout=timedelta(seconds=60))
    dist.init_process_group("gloo", store=dist.PrefixStore("bench", store), rank=world.rank, world_size=world.size)
    try:
        return {numbers: _in_turns(checked, unchecked, op, numbers) for numbers in sizes}
    finally:
        dist.destroy_process_group()


def _in_turns(checked: Communicator, unchecked: Communicator, op: str, numbers: int) -> Figures:
    contenders = {
        "check on": engine(checked, op, numbers),
        "check off": engine(unchecked, op, numbers),
        "torch.distributed": torch_distributed(op, numbers, checked.size),
    }
    return interleaved(contenders, rounds(numbers))


def _unchecked(comm: Communicator) -> Communicator:
    """A second communicator over the same ranks whose calls are not compared."""
    from collshim.transports.process_group import ProcessGroupTransport

    transport = comm._transport
    if not isinstance(transport, ProcessGroupTransport):
        raise TypeError(f"{comm} is not between processes")
    other = ProcessGroupTransport(transport.rendezvous, transport.ranks, f"{transport.key}/unchecked", checks=False)
    return Communicator(other, comm.ranks, "unchecked", comm.timeout)


def _env(name: str) -> str:
    import os

    return os.environ[name]
