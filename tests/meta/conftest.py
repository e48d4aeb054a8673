"""The adapters, with some functions replaced for one test, and ranks that call them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from collshim.conformance.bindings.rank_context import resolve
from collshim.conformance.pool import Pool

Functions = dict[str, Callable[..., Any]]
PREFIX = "collshim."


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Callable[[Functions], str]:
    """Return a function that replaces others, by path, and returns the prefix of the adapters' imports."""

    def exchange(changes: Functions) -> str:
        for path, function in changes.items():
            home, _, name = path.rpartition(".")
            monkeypatch.setattr(resolve(PREFIX + home), name, function)
        return PREFIX

    return exchange


@pytest.fixture
def pool(adapter: Callable[[Functions], str]) -> Iterator[Callable[[Functions], Pool]]:
    """Return a function that starts a pool of two threads that call the adapters with some functions replaced."""
    started: list[Pool] = []

    def start(changes: Functions) -> Pool:
        started.append(Pool("threads", 2, adapter(changes)))
        return started[-1]

    yield start
    for one in started:
        one.close()
