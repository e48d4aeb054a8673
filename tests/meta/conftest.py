"""A baseline adapter, installed for one test with some of its functions exchanged, and ranks that speak it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from collshim.conformance.pool import Pool
from tests.meta.baseline import BASELINE, Functions


@pytest.fixture
def adapter(monkeypatch: pytest.MonkeyPatch) -> Callable[[Functions], str]:
    """Installs the baseline adapter, with some functions exchanged, and returns the prefix of its imports."""

    def install(changes: Functions) -> str:
        for path, function in (BASELINE | changes).items():
            _install(monkeypatch, f"trial.{path}", function)
        return "trial."

    return install


@pytest.fixture
def pool(adapter: Callable[[Functions], str]) -> Iterator[Callable[[Functions], Pool]]:
    """A pool of two threads on the baseline adapter with some functions exchanged."""
    started: list[Pool] = []

    def start(changes: Functions) -> Pool:
        started.append(Pool("threads", 2, adapter(changes)))
        return started[-1]

    yield start
    for one in started:
        one.close()


def _install(monkeypatch: pytest.MonkeyPatch, path: str, function: Any) -> None:
    *parents, name = path.split(".")
    for end in range(1, len(parents) + 1):
        dotted = ".".join(parents[:end])
        if dotted not in sys.modules:
            monkeypatch.setitem(sys.modules, dotted, ModuleType(dotted))
    setattr(sys.modules[".".join(parents)], name, function)
