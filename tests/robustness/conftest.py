"""The live ranks of these tests, and how many bad calls were drawn of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.robustness.drawing import TRANSPORTS
from tests.robustness.effort import counted, drawn
from tests.robustness.pool import Pool

_TOLD = pytest.StashKey[list[str]]()


@pytest.fixture(scope="module")
def pools() -> Iterator[dict[str, Pool]]:
    pools = {transport: Pool(transport) for transport in TRANSPORTS}
    yield pools
    for pool in pools.values():
        pool.close()


@pytest.fixture
def told(request: pytest.FixtureRequest) -> list[str]:
    """What the summary tells the counts of: a transport and a surface."""
    return request.config.stash.setdefault(_TOLD, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """How many bad calls were made, by what was wrong with them."""
    made = [tuple(name.split(", ")) for name in config.stash.get(_TOLD, [])]
    if not made:
        return
    kinds = sum((counted(drawn(surface, transport)) for transport, surface in made), Counter[str]())
    terminalreporter.section(f"robustness: {kinds.total()} bad calls")
    terminalreporter.line(", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
