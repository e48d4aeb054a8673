"""The program of every rank of a measured world, and how worlds of threads and processes take turns."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.distributed import PrefixStore, ProcessGroup, ProcessGroupGloo

import collshim
import collshim.torch.distributed as shim
from collshim import Communicator, World
from tests.benchmarks.insides import process_group, unchecked
from tests.benchmarks.measure import DEADLINE, Cells, Contender, Samples, concatenate, in_turns, slowest
from tests.benchmarks.operands import Operands, as_numpy
from tests.benchmarks.operations import OPERATIONS, Operation

Tables = Mapping[str, Cells]
"""Times by operation."""

Contenders = Callable[[Operation, int], dict[str, Contender]]
"""The contenders for an operation on a number of bytes."""

MODULES = {"torch.distributed": dist, "collshim.torch": shim}


class Job(NamedTuple):
    """The measurements of a world's ranks.

    Attributes:
        names: the operations.
        repeats: how often a call is repeated, by bytes that each rank gives.
        numpy: the engine's contenders that are called with NumPy arrays too.
    """

    names: Sequence[str]
    repeats: Mapping[int, int]
    numpy: Collection[str] = ()

    def times(self, barrier: Contender, contenders: Contenders) -> Tables:
        """Return this rank's times."""
        return {name: self._cells(OPERATIONS[name], barrier, contenders) for name in self.names}

    def _cells(self, operation: Operation, barrier: Contender, contenders: Contenders) -> Cells:
        repeats = self.repeats if operation.sized else {0: max(self.repeats.values())}
        return {nbytes: in_turns(contenders(operation, nbytes), count, barrier) for nbytes, count in repeats.items()}


def measure_engine(job: Job, size: int, blocks: int) -> Tables:
    """Measure the engine on ``size`` ranks, threads and processes in turns by blocks, beside its foundations.

    One rank needs no others, so it is measured once, as a process.
    """
    return _merged(concatenate, [_block(job, size) for _ in range(blocks)])


def measure_adapter(job: Job, size: int, blocks: int) -> Tables:
    """Measure collshim.torch.distributed between processes without the check, beside torch.distributed."""
    with collshim.options(check=False):
        return _merged(concatenate, [_launched(adapter_among_processes, size, "processes", job) for _ in range(blocks)])


def _block(job: Job, size: int) -> Tables:
    with collshim.options(check=True):
        processes = _launched(among_processes, size, "processes", job)
    if size == 1:
        return processes
    threads = _launched(among_threads, size, "threads", job)
    return {
        name: {nbytes: threads[name][nbytes] | samples for nbytes, samples in cells.items()}
        for name, cells in processes.items()
    }


def _launched(among: Callable[[Job], Tables], size: int, kind: str, job: Job) -> Tables:
    return _merged(slowest, collshim.launch(among, size, ranks=kind, args=(job,), timeout=DEADLINE))


def _merged(merge: Callable[[list[Samples]], Samples], tables: list[Tables]) -> Tables:
    return {
        name: {nbytes: merge([table[name][nbytes] for table in tables]) for nbytes in cells}
        for name, cells in tables[0].items()
    }


def among_threads(job: Job) -> Tables:
    """Measure one rank of a world of threads, whose calls are always compared."""
    comm = collshim.current().communicator

    def contenders(operation: Operation, nbytes: int) -> dict[str, Contender]:
        operands = operation.operands(Operands(comm.rank, comm.size, nbytes))
        return _engine(job, comm, "threads", operation, operands)

    return job.times(lambda: comm.barrier().wait(), contenders)


def among_processes(job: Job) -> Tables:
    """Measure one rank of a world of processes: the engine with and without the check, its foundation, and torch."""
    world = collshim.current()
    with torchs_gloo(world) as barrier:
        apart = unchecked(world)
        try:
            return job.times(barrier, partial(_beside_engine, job, world.communicator, apart))
        finally:
            apart.close()


def adapter_among_processes(job: Job) -> Tables:
    """Measure one rank of a world of processes: the same calls of collshim.torch.distributed and torch.distributed."""
    world = collshim.current()

    def contenders(operation: Operation, nbytes: int) -> dict[str, Contender]:
        operands = operation.operands(Operands(world.rank, world.size, nbytes))
        assert operation.torch is not None
        return {name: partial(operation.torch, module, *operands) for name, module in MODULES.items()}

    with torchs_gloo(world) as barrier, adapter_group():
        return job.times(barrier, contenders)


def _beside_engine(
    job: Job, checked: Communicator, apart: Communicator, operation: Operation, nbytes: int
) -> dict[str, Contender]:
    operands = operation.operands(Operands(checked.rank, checked.size, nbytes))
    contenders: dict[str, Contender] = {}
    if operation.bare is not None:
        contenders["bare"] = partial(operation.bare, process_group(apart), *operands)
    if operation.torch is not None:
        contenders["torch.distributed"] = partial(operation.torch, dist, *operands)
    if checked.size == 1:
        return contenders | _engine(job, checked, "engine", operation, operands)
    contenders |= _engine(job, apart, "check off", operation, operands)
    return contenders | _engine(job, checked, "check on", operation, operands)


def _engine(
    job: Job, comm: Communicator, name: str, operation: Operation, operands: Sequence[Any]
) -> dict[str, Contender]:
    assert operation.engine is not None
    contenders: dict[str, Contender] = {name: partial(operation.engine, comm, *operands)}
    if name in job.numpy:
        contenders[f"{name}, NumPy"] = partial(operation.engine, comm, *map(as_numpy, operands))
    return contenders


@contextmanager
def torchs_gloo(world: World) -> Iterator[Contender]:
    """Give torch.distributed a default group over gloo; the barrier is that of one more such group."""
    _use_loopback()
    store = PrefixStore("bench/default", world.store)
    dist.init_process_group("gloo", store=store, rank=world.rank, world_size=world.size)
    between: Any = dist.new_group(backend="gloo")
    try:
        yield lambda: between.barrier().wait()
    finally:
        dist.destroy_process_group()


@contextmanager
def adapter_group() -> Iterator[None]:
    """Give collshim.torch.distributed a default group too; the older one of torch.distributed stays on gloo."""
    shim.init_process_group("gloo")
    default: Any = dist.group.WORLD
    backend = default._get_backend(torch.device("cpu"))
    if type(default) is not ProcessGroup or type(backend) is not ProcessGroupGloo:
        raise AssertionError(f"torch.distributed uses {default} and {backend}, should use only gloo")
    try:
        yield
    finally:
        shim.destroy_process_group()


def _use_loopback() -> None:
    """Let torch's own group use the loopback interface too, as the engine does between processes of one machine."""
    loopback = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    os.environ.setdefault("GLOO_SOCKET_IFNAME", loopback[0])
