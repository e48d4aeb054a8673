"""Host time: the cost of one call on the host, post and wait, if nothing is sent.

torch's fake group of two ranks completes at once: the engine and its adapter for torch use one of them, and
torch.distributed another.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

import collshim
import collshim.torch.distributed as shim
from collshim import Communicator
from collshim.world import use
from tests.benchmarks.insides import fake_world, process_group
from tests.benchmarks.measure import DEADLINE, Contender, Samples
from tests.benchmarks.operands import Operands, as_numpy
from tests.benchmarks.operations import OPERATIONS, OPS

SIZE, NBYTES = 2, 64

BURST = 50
"""Calls that are timed together."""

FRESH = "all_reduce, fresh"

NUMPY = (*OPS, FRESH)
"""Operations that are called with NumPy arrays too."""

Host = Mapping[str, Samples]
"""Seconds of a call in each burst, by operation and contender."""


def measure_host(names: Sequence[str], bursts: int) -> Host:
    """Measure in a separate process with the fake group as its default group."""
    return collshim.launch(among, 1, ranks="processes", args=(names, bursts), timeout=DEADLINE)[0]


def among(names: Sequence[str], bursts: int) -> Host:
    """Measure in this process."""
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=SIZE)
    world = fake_world(SIZE)
    with use(world):
        shim.init_process_group("gloo")
        return {name: _bursts(_contenders(world.communicator, name), bursts) for name in names if OPERATIONS[name].fake}


def _contenders(comm: Communicator, name: str) -> dict[str, Contender]:
    operation = OPERATIONS[name]
    operands = operation.operands(Operands(0, SIZE, NBYTES))
    faces: dict[str, tuple[Callable[..., object] | None, object]] = {
        "bare": (operation.bare, process_group(comm)),
        "engine": (operation.engine, comm),
        "torch.distributed": (operation.torch, dist),
        "collshim.torch": (operation.torch, shim),
    }
    contenders: dict[str, Contender] = {
        key: partial(call, face, *operands) for key, (call, face) in faces.items() if call is not None
    }
    if name in NUMPY and operation.engine is not None:
        contenders["engine, NumPy"] = partial(operation.engine, comm, *map(as_numpy, operands))
    return contenders


def _bursts(contenders: dict[str, Contender], count: int) -> Samples:
    for contender in contenders.values():
        contender()
    times: Samples = {name: [] for name in contenders}
    for _ in range(count):
        for name, contender in contenders.items():
            times[name].append(_burst(contender))
    return times


def _burst(contender: Contender) -> float:
    """Return the seconds of one of many consecutive calls."""
    start = time.perf_counter()
    for _ in range(BURST):
        contender()
    return (time.perf_counter() - start) / BURST
