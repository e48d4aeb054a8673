"""Ranks that are threads and have joined MegEngine's process group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import collshim
import collshim.megengine as mge
from tests import ports
from tests.adapters.conftest import Around, Run


def join() -> None:
    """Join the process group of this rank's world."""
    world = collshim.current()
    mge.distributed.init_process_group("localhost", 23456, world.size, world.rank, world.rank)


@pytest.fixture
def free_port() -> int:
    """Return a port that nobody listens on."""
    return ports.free_port()


@pytest.fixture
def around() -> Around:
    def joined(fn: Callable[[], Any]) -> Any:
        join()
        return fn()

    return joined


@pytest.fixture
def refused(run: Run) -> Callable[..., list[BaseException]]:
    """Return ``refused(fn, size, *args)``, which returns the error that ``fn(*args)`` raises on each rank."""

    def caught(fn: Callable[..., Any], *args: Any) -> BaseException:
        try:
            result = fn(*args)
        except Exception as error:
            return error
        raise LookupError(f"nothing was raised, the result is {result!r}")

    def start(fn: Callable[..., Any], size: int, *args: Any) -> list[BaseException]:
        return run(caught, size, fn, *args)

    return start
