"""No test leaves this process in a world that the next one would find."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import collshim
from collshim.world import peek


@pytest.fixture(autouse=True)
def _no_world_is_left() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    while peek() is not None:
        collshim.close()
