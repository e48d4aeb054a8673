"""Ranks that are threads and have called ``init``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from collshim.mindspore.communication import init
from tests.adapters.conftest import Around


@pytest.fixture
def around() -> Around:
    def initialised(fn: Callable[[], Any]) -> Any:
        init("mccl")
        return fn()

    return initialised


@pytest.fixture(params=[1, 2, 4])
def size(request: pytest.FixtureRequest) -> int:
    """The number of ranks."""
    count: int = request.param
    return count
