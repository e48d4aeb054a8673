"""The live ranks of these tests, and the number of drawn bad calls of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.robustness.drawing import TRANSPORTS
from tests.robustness.pool import Pool


@pytest.fixture(scope="module")
def pools() -> Iterator[dict[str, Pool]]:
    pools = {transport: Pool(transport) for transport in TRANSPORTS}
    yield pools
    for pool in pools.values():
        pool.close()
