"""all_gather of 1 KB among four threads, calls behind each other: what one call costs in a loop."""

from __future__ import annotations

import statistics
import time

import torch

import collshim
from tests.benchmarks.measure import Figure, tenth
from tests.benchmarks.ranks import DEADLINE

RANKS, NUMBERS, CALLS = 4, 256, 1000


def measured(worlds: int) -> Figure:
    """Over the calls of all ranks, in several worlds one after the other."""
    found = [collshim.launch(_times, RANKS, timeout=DEADLINE) for _ in range(worlds)]
    times = [seconds for ranks in found for rank in ranks for seconds in rank]
    return Figure(statistics.median(times) * 1e6, tenth(times) * 1e6)


def _times() -> list[float]:
    comm = collshim.current().communicator
    given, found = torch.zeros(NUMBERS), list[float]()
    comm.barrier().wait()
    for _ in range(CALLS):
        start = time.perf_counter()
        comm.all_gather(given).wait()
        found.append(time.perf_counter() - start)
    return found
