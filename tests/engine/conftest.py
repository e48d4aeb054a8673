"""A test that asks for a transport is run over each, where it does not say over which."""

from __future__ import annotations

import pytest

from tests.engine.worlds import TRANSPORTS


@pytest.fixture(params=TRANSPORTS)
def transport(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found
