"""Host time: what post and wait add to the bare ProcessGroup call, where nothing is sent.

torch's fake group of two ranks answers at once, so that what is left is what the calls cost on the host.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch._C._distributed_c10d import FakeProcessGroup
from torch.distributed import HashStore, ProcessGroup

from collshim import Communicator
from collshim.transports.processes.store import ProcessWorld
from collshim.transports.processes.transport import ProcessTransport
from tests.benchmarks.contenders import OPS, bare, engine, operands
from tests.benchmarks.measure import Contender, Samples

WANTED = {"torch": 2.0, "NumPy": 5.0}
"""Microseconds over the bare call, by kind of array."""

BURST = 200
"""Calls that are timed together."""

_FRESH = " (fresh result)"


class _Fake(ProcessWorld):
    """Groups that are torch's fake one."""

    def group(self, key: str, ranks: Sequence[int], *, cuda: bool) -> ProcessGroup:
        """A ProcessGroup whose calls are over when they return, and move nothing."""
        found = ProcessGroup(self.store, self.rank, len(ranks))
        make: Any = getattr(FakeProcessGroup, "_create_internal", FakeProcessGroup)  # the class itself in older torch
        fake = make(self.rank, len(ranks))
        found._register_backend(torch.device("cpu"), ProcessGroup.BackendType.CUSTOM, fake)
        found._set_default_backend(ProcessGroup.BackendType.CUSTOM)
        return found


class Over(NamedTuple):
    """One kind of array's cost over the bare call: the least and the median of all bursts, in microseconds."""

    kind: str
    least: float
    median: float


class HostTime(NamedTuple):
    """The bare call's own time, the least and the median, and what the engine adds to it."""

    call: str
    bare: tuple[float, float]
    over: list[Over]


def host_times(bursts: int) -> list[HostTime]:
    """Of every collective with a place for its result, and of one that makes its own."""
    transport = ProcessTransport(_Fake(HashStore(), 0, 60.0), [0, 1], "fake", checks=False)
    comm = Communicator(transport, [0, 1], "fake", 60.0)
    found = [_measured(op, _contenders(comm, op), bursts) for op in OPS]
    found.append(_measured(f"all_reduce{_FRESH}", _making(comm), bursts))
    comm.close()
    return found


def _contenders(comm: Communicator, op: str) -> dict[str, Contender]:
    given, out = operands(op, 16 * comm.size, comm.size)
    there = given.numpy()
    return {
        "bare": bare(_group(comm), op, given, out),
        "torch": engine(comm, op, given, out),
        "NumPy": engine(comm, op, there, there if out is given else out.numpy()),
    }


def _making(comm: Communicator) -> dict[str, Contender]:
    """all_reduce into fresh memory; the bare call is given a copy."""
    given, group = torch.zeros(8), _group(comm)
    there = given.numpy()

    def copied() -> Tensor:
        copy = given.clone()
        group.allreduce([copy]).wait()
        return copy

    return {
        "bare": copied,
        "torch": lambda: comm.all_reduce(given).wait(),
        "NumPy": lambda: comm.all_reduce(there).wait(),
    }


def _group(comm: Communicator) -> ProcessGroup:
    group: ProcessGroup = comm._transport.data_group  # type: ignore[attr-defined]  # not of every transport
    return group


def _measured(call: str, contenders: dict[str, Contender], bursts: int) -> HostTime:
    times: Samples = {name: [] for name in contenders}
    for _ in range(bursts):
        for name, contender in contenders.items():
            times[name].append(_burst(contender) * 1e6)
    own, middle = min(times["bare"]), statistics.median(times["bare"])
    over = [Over(kind, min(times[kind]) - own, statistics.median(times[kind]) - middle) for kind in WANTED]
    return HostTime(call, (own, middle), over)


def _burst(contender: Contender) -> float:
    """Seconds for one of many calls behind each other."""
    start = time.perf_counter()
    for _ in range(BURST):
        contender()
    return (time.perf_counter() - start) / BURST
