"""A test with the argument ``transport`` runs over each, unless it selects some."""

from __future__ import annotations

import pytest

from tests.engine.worlds import CHECKED, TRANSPORTS


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture(params=CHECKED)
def checked(request: pytest.FixtureRequest) -> str:
    """Return a transport over which ranks compare their calls."""
    found: str = request.param
    return found
