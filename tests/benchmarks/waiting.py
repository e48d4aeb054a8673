"""The processor time of a rank that waits for a late one, on two processes, over gloo and over collshim."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.distributed

import collshim
import collshim.torch.distributed as shim
from tests.benchmarks.measure import DEADLINE
from tests.benchmarks.ranks import adapter_group, torchs_gloo

SIZE = 2
GLOO, COLLSHIM = "gloo", "collshim.torch"

Shares = Mapping[str, Mapping[str, float]]
"""The share of a processor's time that rank 0 used while it waited, by call and contender."""

Wait = Callable[[Any, Callable[[], None]], None]
"""A call of all ranks on a module's default group, and what makes rank 1 late."""


def _all_reduce(count: int) -> Wait:
    def call(dist: Any, be_late: Callable[[], None]) -> None:
        be_late()
        dist.all_reduce(torch.ones(count))

    return call


def _pending(dist: Any, be_late: Callable[[], None]) -> None:
    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(1 << 20), async_op=True)
        be_late()
    else:
        be_late()
        work = dist.all_reduce(torch.ones(1 << 20), async_op=True)
    work.wait()


def _receive(dist: Any, be_late: Callable[[], None]) -> None:
    be_late()
    if dist.get_rank() == 0:
        dist.recv(torch.empty(1), 1)
    else:
        dist.send(torch.ones(1), 0)


CALLS: dict[str, Wait] = {
    "all_reduce, 4 B": _all_reduce(1),
    "all_reduce, 4 MB": _all_reduce(1 << 20),
    "all_reduce, 4 MB, async_op": _pending,
    "recv, 4 B": _receive,
}


def measure_waiting(seconds: float) -> Shares:
    """Let rank 1 be late by so many seconds in each call."""
    return collshim.launch(among, SIZE, ranks="processes", args=(seconds,), timeout=DEADLINE)[0]


def among(seconds: float) -> Shares:
    """Measure one rank's share."""
    with torchs_gloo(collshim.current()), adapter_group():
        contenders = {GLOO: torch.distributed, COLLSHIM: shim}
        return {
            name: {kind: _share(call, dist, seconds) for kind, dist in contenders.items()}
            for name, call in CALLS.items()
        }


def _share(call: Wait, dist: Any, seconds: float) -> float:
    call(dist, lambda: None)  # the first call of its kind makes plans, and perhaps connections
    dist.barrier()
    is_pending = call is _pending

    def be_late() -> None:
        if is_pending or dist.get_rank() == 1:
            time.sleep(seconds)

    start, used = time.monotonic(), time.process_time()
    call(dist, be_late)
    return (time.process_time() - used) / (time.monotonic() - start)


def rows(shares: Shares) -> list[list[str]]:
    """Return each call, and each contender's share in per cent."""
    return [[name, *(f"{100 * share:.1f} %" for share in found.values())] for name, found in shares.items()]
