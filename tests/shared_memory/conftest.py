"""Fixtures for tests of the ranks' meeting in shared memory."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.shared_memory.rings import FORMS, missing


@pytest.fixture(autouse=True)
def _needs_linux() -> None:  # pyright: ignore[reportUnusedFunction]
    if sys.platform != "linux":
        pytest.skip("shared memory needs Linux")


@pytest.fixture(params=FORMS)
def forms(request: pytest.FixtureRequest) -> Any:
    """Return the forms of rank 0 and of the other ranks."""
    chosen = FORMS[request.param]
    if reason := missing(chosen):
        pytest.skip(reason)
    return chosen
