"""The programs of this folder import each other by plain names, as scripts do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from collshim.invariance.program import Program

HERE = Path(__file__).parent


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the programs, from which modules are imported during the test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(HERE / "programs")
    monkeypatch.syspath_prepend(HERE / "frameworks")
    yield HERE / "programs"
    for name in set(sys.modules) - before:
        if str(HERE) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def named(folder: Path, name: str) -> Program:
    """Return the program of a file."""
    return Program.found(f"{folder / name}.py:step")
