"""The live ranks of these tests, and how many bad calls were drawn of each kind."""

from __future__ import annotations

from collections import Counter
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many bad calls were made, by what was wrong with them."""
    reports = [*terminalreporter.stats.get("passed", []), *terminalreporter.stats.get("failed", [])]
    counts = [count for report in reports for name, count in report.user_properties if name == "bad calls"]
    kinds = sum(map(Counter[str], counts), Counter[str]())
    if kinds:
        terminalreporter.section(f"robustness: {kinds.total()} bad calls")
        terminalreporter.line(", ".join(f"{kind} {count}" for kind, count in kinds.most_common()))
