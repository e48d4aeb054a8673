"""Scenarios in which the compiled core repeats calls whole, and how to see that it does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import collshim.torch.distributed as dist
from collshim.transports.shared_memory import core
from tests.engine.call_counts import count
from tests.engine.worlds import on_ranks

NEEDS_CORE = pytest.mark.skipif(core.Repeat is None, reason="only the compiled core repeats calls whole")

FEW = 15
"""The Python calls into collshim of a call that the core repeats, at most; others take 16 and more."""


def run(scenario: Callable[[], Any], size: int = 2, **more: Any) -> list[Any]:
    return on_ranks(_with_torch, size, "processes", scenario, **more)


def _with_torch(scenario: Callable[[], Any]) -> Any:
    dist.init_process_group("gloo")
    return scenario()


def is_whole(call: Callable[[], object], most: int = FEW) -> bool:
    """Return whether the core repeats the call; it has to find the line that makes it first."""
    call()
    return count(call).calls <= most


def repeated(call: Callable[[], object], most: int = FEW) -> bool:
    """Return whether the core repeats the call once it was made some times."""
    for _ in range(4):
        call()
    dist.barrier()
    return is_whole(call, most)


def add(x: Any, group: Any = None) -> None:
    dist.all_reduce(x, group=group)
