"""Small calls between threads, and the time of a hand-over between threads on this machine.

The same is measured with all threads on one core, if the system allows it: the time to wake a thread on another core,
which may sleep, is the machine's and not the engine's.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch

import collshim
from tests.benchmarks.measure import DEADLINE, Figure, tenth

RANKS, NUMBERS, CALLS = 4, 256, 1000
ALL_GATHER = f"all_gather of 1 KB among {RANKS} threads"
HAND_OVER = "hand-over from one thread to another"


def measure_small(worlds: int) -> dict[str, Figure]:
    """Measure the calls of all ranks, in several consecutive worlds, and hand-overs."""
    subjects: dict[str, Callable[[], list[float]]] = {ALL_GATHER: _all_gathers, HAND_OVER: _hand_overs}
    found = {name: _figure(fn, worlds) for name, fn in subjects.items()}
    if hasattr(os, "sched_setaffinity"):
        with _one_core():
            found |= {f"{name}, on one core": _figure(fn, worlds) for name, fn in subjects.items()}
    return found


def _figure(fn: Callable[[], list[float]], worlds: int) -> Figure:
    times = [seconds for _ in range(worlds) for seconds in fn()]
    return Figure(statistics.median(times) * 1e6, tenth(times) * 1e6)


@contextmanager
def _one_core() -> Iterator[None]:
    """Put threads that are started meanwhile on one core."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _all_gathers() -> list[float]:
    return [seconds for rank in collshim.launch(_times, RANKS, timeout=DEADLINE) for seconds in rank]


def _times() -> list[float]:
    comm = collshim.current().communicator
    given, found = torch.zeros(NUMBERS), list[float]()
    comm.barrier().wait()
    for _ in range(CALLS):
        start = time.perf_counter()
        comm.all_gather(given).wait()
        found.append(time.perf_counter() - start)
    return found


def _hand_overs() -> list[float]:
    """Let two threads release each other in turns; return half of each round trip."""
    here, there = threading.Lock(), threading.Lock()
    here.acquire()
    there.acquire()

    def answer() -> None:
        for _ in range(CALLS):
            there.acquire()
            here.release()

    thread = threading.Thread(target=answer)
    thread.start()
    found = [_round_trip(there, here) / 2 for _ in range(CALLS)]
    thread.join()
    return found


def _round_trip(there: threading.Lock, here: threading.Lock) -> float:
    start = time.perf_counter()
    there.release()
    here.acquire()
    return time.perf_counter() - start
