"""The live ranks of the suite's tests, and the list of what is missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from collshim.conformance.missing import MISSING
from collshim.conformance.patience import Patience
from collshim.conformance.plugin import SUBJECT
from collshim.conformance.pool import Pools
from collshim.conformance.subject import ADAPTERS


@pytest.fixture(scope="module")
def pools(pytestconfig: pytest.Config) -> Iterator[Pools]:
    """Of collshim's adapters, or of the module that the command line names."""
    pools = pytestconfig.stash.get(SUBJECT, ADAPTERS).pools()
    yield pools
    pools.close()


@pytest.fixture
def patience() -> Patience:
    return Patience()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what no adapter offers yet; those tests did not run, and nobody may take them for passed."""
    if MISSING:
        terminalreporter.section(f"conformance: {len(MISSING)} functions missing")
        for path in sorted(MISSING):
            terminalreporter.line(f"missing: {path} ({MISSING[path]} tests)")
