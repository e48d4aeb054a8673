"""The cost of calls on a GPU: the engine beside the bare ProcessGroup, and four ranks that are threads."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import HashStore

import collshim
import collshim.torch.distributed as shim
from collshim import Communicator
from collshim.world import use
from tests.gpu.alone import world_of_one
from tests.gpu.hardware import DEVICE

NUMBERS = {"4 B": 1, "4 KB": 1 << 10, "1 MB": 1 << 18, "64 MB": 1 << 24}
"""float32 elements per rank by the size's name in a table."""

RANKS = 4
ROUNDS = 60
BURST = 25
"""Consecutive calls, which the host posts while the GPU runs the first."""

OPS = ("all_reduce", "broadcast", "all_gather", "all_to_all")
"""Calls for which torch gives NCCL a kernel for one rank too; it makes a copy of a reduce_scatter."""

_COLUMNS = {
    "engine": "engine",
    "bare": "bare ProcessGroup",
    "shim_async": "collshim.torch, async_op",
    "torch_async": "torch.distributed, async_op",
    "shim": "collshim.torch",
    "torch": "torch.distributed",
    "cupy": "CuPy arrays",
}

Contender = Callable[[], Any]


def lines() -> list[str]:
    """Return the tables in Markdown."""
    return [*host_times(NUMBERS), "", *_among_threads()]


def host_times(
    numbers: Mapping[str, int], while_posting: Callable[[], AbstractContextManager[object]] = nullcontext
) -> list[str]:
    """Return a table of calls in place or with an ``out``, waited for on the stream of their post."""
    found = [
        "Host time of post and wait over NCCL, one rank, check off: p10 (median) in us, of bursts on an idle GPU.",
        "",
        f"| collective | size | {' | '.join(_COLUMNS.values())} |",
        f"| --- | --- |{' --- |' * len(_COLUMNS)}",
    ]
    dist.init_process_group("nccl", store=HashStore(), rank=0, world_size=1)
    try:
        with world_of_one() as world, use(world):
            shim.init_process_group("nccl")
            for op in OPS:
                for size, count in numbers.items():
                    times = _in_turns(_contenders(world.communicator, op, count), while_posting)
                    found.append(_host_line(op, size, times))
    finally:
        dist.destroy_process_group()
    return found


def _contenders(comm: Communicator, op: str, count: int) -> dict[str, Contender]:
    x, out = torch.ones(count, device=DEVICE), torch.empty(1, count, device=DEVICE)
    found = {
        "engine": _engine(comm, op, x, out),
        "bare": _bare(comm._transport, op, x, out),
        "shim_async": _torchs(shim, op, x, out, async_op=True),
        "torch_async": _torchs(dist, op, x, out, async_op=True),
        "shim": _torchs(shim, op, x, out),
        "torch": _torchs(dist, op, x, out),
    }
    if find_spec("cupy") is not None:
        import cupy

        found["cupy"] = _engine(comm, op, cupy.ones(count, "float32"), cupy.empty((1, count), "float32"))
    return found


def _engine(comm: Communicator, op: str, x: Any, out: Any) -> Contender:
    stacked = x[None]
    calls: dict[str, Contender] = {
        "all_reduce": lambda: comm.all_reduce(x, out=x).wait(),
        "broadcast": lambda: comm.broadcast(x, out=x).wait(),
        "all_gather": lambda: comm.all_gather(x, out=out).wait(),
        "all_to_all": lambda: comm.all_to_all(stacked, out=out).wait(),
    }
    return calls[op]


def _bare(transport: Any, op: str, x: torch.Tensor, out: torch.Tensor) -> Contender:
    group, flat = transport.data_group, out.view(-1)
    gather, exchange = (_method(group, *names) for names in _RENAMED)
    calls: dict[str, Contender] = {
        "all_reduce": lambda: group.allreduce(x).wait(),
        "broadcast": lambda: group.broadcast(x, 0).wait(),
        "all_gather": lambda: gather(flat, x).wait(),
        "all_to_all": lambda: exchange(flat, x, [], []).wait(),
    }
    return calls[op]


def _torchs(module: Any, op: str, x: torch.Tensor, out: torch.Tensor, *, async_op: bool = False) -> Contender:
    flat = out.view(-1)
    gather = getattr(module, "all_gather_single", None) or module.all_gather_into_tensor
    calls: dict[str, Contender] = {
        "all_reduce": lambda: module.all_reduce(x, async_op=async_op),
        "broadcast": lambda: module.broadcast(x, 0, async_op=async_op),
        "all_gather": lambda: gather(flat, x, async_op=async_op),
        "all_to_all": lambda: module.all_to_all_single(flat, x, async_op=async_op),
    }
    call = calls[op]
    return (lambda: call().wait()) if async_op else call


_RENAMED = (
    ("all_gather_single", "_allgather_base"),
    ("all_to_all_single", "alltoall_base"),
)
"""ProcessGroup's methods by their name in torch 2.13, with the earlier name."""


def _method(group: Any, *names: str) -> Any:
    return next(getattr(group, name) for name in names if hasattr(group, name))


def _in_turns(
    contenders: dict[str, Contender], while_posting: Callable[[], AbstractContextManager[object]]
) -> dict[str, tuple[float, float]]:
    """Return tenth percentile and median in microseconds; disturbances affect all contenders."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, contender in contenders.items():
            torch.cuda.synchronize()
            with while_posting():
                for _ in range(BURST):
                    start = time.perf_counter()
                    contender()
                    times[name].append((time.perf_counter() - start) * 1e6)
    return {name: (sorted(found)[len(found) // 10], statistics.median(found)) for name, found in times.items()}


def _host_line(op: str, size: str, found: dict[str, tuple[float, float]]) -> str:
    shown = {name: f"{tenth:.1f} ({median:.1f})" for name, (tenth, median) in found.items()}
    return f"| {op} | {size} | {' | '.join(shown.get(name, '') for name in _COLUMNS)} |"


def _among_threads() -> list[str]:
    found = [
        f"{RANKS} ranks as threads on one GPU, {ROUNDS} calls behind each other: us for one call on the clock, GPU"
        " included, and what the ranks read and wrote in that time.",
        "",
        "| collective | size | us | GB/s |",
        "| --- | --- | --- | --- |",
    ]
    for op, moved in {"all_reduce": 2, "broadcast": 2, "all_gather": 2 * RANKS, "all_to_all": 2}.items():
        for size, count in NUMBERS.items():
            seconds = max(collshim.launch(_threads_time, RANKS, args=(op, count), timeout=200))
            rate = moved * RANKS * count * 4 / seconds / 1e9
            found.append(f"| {op} | {size} | {seconds * 1e6:.0f} | {rate:.0f} |")
    return found


def _threads_time(op: str, count: int) -> float:
    """Return the seconds of one call, on this rank."""
    comm = collshim.current().communicator
    x, whole = torch.ones(count, device=DEVICE), torch.empty(RANKS, count, device=DEVICE)
    parts = torch.ones(RANKS, max(1, count // RANKS), device=DEVICE)
    into = torch.empty_like(parts)
    calls: dict[str, Contender] = {
        "all_reduce": lambda: comm.all_reduce(x, out=x).wait(),
        "broadcast": lambda: comm.broadcast(x, out=x).wait(),
        "all_gather": lambda: comm.all_gather(x, out=whole).wait(),
        "all_to_all": lambda: comm.all_to_all(parts, out=into).wait(),
    }
    for _ in range(5):
        calls[op]()
    comm.barrier().wait()
    torch.cuda.synchronize()
    comm.barrier().wait()
    start = time.perf_counter()
    for _ in range(ROUNDS):
        calls[op]()
    torch.cuda.synchronize()
    return (time.perf_counter() - start) / ROUNDS
