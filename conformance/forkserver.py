"""Processes forked from a server that has already imported torch, the adapters and the suite, so they start quickly."""

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
    """Return the context that starts processes: the fork server, or spawn if the system has no fork server."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(_PRELOADED)
    return server
