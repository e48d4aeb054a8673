"""Ranks that do one thing many times, and their system resources before and after."""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from pathlib import Path
from time import monotonic, sleep
from typing import NamedTuple

import torch

from tests.engine.worlds import world

SETTLE_SECONDS = 10.0
_M_MMAP_THRESHOLD = -3  # of glibc's malloc.h
_MAPPED_BYTES = 128 * 1024
_STATUS = Path("/proc/self/status")
_DESCRIPTORS = Path("/proc/self/fd")
_MAPS = Path("/proc/self/maps")


class Held(NamedTuple):
    """Open file descriptors, threads and mappings of shared memory of this process, the system's threads counted."""

    descriptors: int
    threads: int
    mappings: int


def held() -> Held:
    gc.collect()
    threads = int(_field("Threads")) if _STATUS.exists() else threading.active_count()
    mappings = _MAPS.read_text().count("memfd:collshim") if _MAPS.exists() else 0
    return Held(len(os.listdir(_DESCRIPTORS)) if _DESCRIPTORS.exists() else 0, threads, mappings)


def resident() -> int:
    """Return the resident bytes of this process."""
    return int(_field("VmRSS").split()[0]) * 1024


def trim() -> None:
    """Let glibc return freed memory to the system, which it keeps if other memory lies between."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


def map_large_blocks() -> None:
    """Let glibc map each large block separately, as it does until a program frees the first.

    Later ones lie among small ones of its arenas, which then keep freed memory: eventually some hundred MiB.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(_M_MMAP_THRESHOLD, _MAPPED_BYTES)


def _field(name: str) -> str:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(f"{name}:"))
    return line.partition(":")[2].strip()


def many_groups(count: int) -> tuple[Held, Held]:
    """Make, use and destroy groups in two orders of ranks; return the resources after the first few and the last."""
    comm = world()
    _groups(10)
    comm.barrier().wait()
    before = held()
    _groups(count)
    comm.barrier().wait()
    return before, _settled(before)


def _groups(count: int) -> None:
    comm = world()
    for turn in range(count):
        group = comm.subgroup(range(comm.size) if turn % 2 else range(comm.size - 1, -1, -1))
        assert group is not None
        if turn % 3:
            assert group.all_reduce(torch.ones(2)).wait().tolist() == [comm.size] * 2
        group.close()


def _settled(before: Held) -> Held:
    """Return the resources after threads that end groups have had their time."""
    end = monotonic() + SETTLE_SECONDS
    now = held()
    while any(after > kept for after, kept in zip(now, before, strict=True)) and monotonic() < end:
        sleep(0.05)
        now = held()
    return now


def many_reductions(count: int, megabytes: int) -> tuple[int, int]:
    """Return the resident bytes after the tenth and after the last all_reduce."""
    comm, tenth = world(), 0
    given = torch.ones(megabytes * 2**20 // 4)
    for turn in range(count):
        total = comm.all_reduce(given).wait()
        assert total[-1] == comm.size
        del total
        if turn == 9:
            tenth = _resident_of_all()
    return tenth, _resident_of_all()


def _resident_of_all() -> int:
    """Return ``resident`` while no rank has a pending call: if ranks are threads it covers all of them."""
    comm = world()
    comm.barrier().wait()
    found = resident()
    comm.barrier().wait()
    return found
