"""Processes that a server forks off, which has imported torch, the adapters and the suite: they start at once."""

from __future__ import annotations

import multiprocessing
from multiprocessing.context import ForkServerContext, SpawnContext

from collshim.frameworks import FRAMEWORKS

_PRELOADED = [
    "collshim.conformance.faults.rank",
    "collshim.conformance.process_rank",
    *(f"collshim.{entry.functions}" for entry in FRAMEWORKS.values()),
    "collshim.launching.preloaded",
]


def context() -> ForkServerContext | SpawnContext:
    """What starts processes: the server, or interpreters of their own where the system has none."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(_PRELOADED)
    return server
