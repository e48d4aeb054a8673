"""The live ranks of the suite's tests, and the list of what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from collshim.conformance.effort import TRANSPORTS
from collshim.conformance.patience import Patience
from collshim.conformance.plugin import RULES
from collshim.conformance.pool import Pools
from collshim.conformance.report.plan import Plan
from collshim.conformance.rules import Rules
from collshim.conformance.subject import ADAPTERS

_SKIPPED = "Skipped: missing: "
_OWN = Rules(Plan(ADAPTERS, TRANSPORTS))


@pytest.fixture(scope="module")
def pools(pytestconfig: pytest.Config) -> Iterator[Pools]:
    """Of collshim's adapters, or of the module that the command line names."""
    pools = pytestconfig.stash.get(RULES, _OWN).subject.pools()
    yield pools
    pools.close()


@pytest.fixture(scope="session")
def rules(pytestconfig: pytest.Config) -> Rules:
    """Collshim's own, or as the command line says."""
    return pytestconfig.stash.get(RULES, _OWN)


@pytest.fixture
def patience() -> Patience:
    return Patience()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what no adapter offers yet; those tests did not run, and do not count as passed."""
    missing = Counter(path for reason in _reasons(terminalreporter) for path in reason.split(", "))
    if missing:
        terminalreporter.section(f"conformance: {len(missing)} functions missing")
        for path in sorted(missing):
            terminalreporter.line(f"missing: {path} ({missing[path]} tests)")


def _reasons(terminalreporter: pytest.TerminalReporter) -> list[str]:
    """What the skipped tests miss, from their reports, which workers send too."""
    skipped = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", [])]
    return [reason.removeprefix(_SKIPPED) for reason in skipped if reason.startswith(_SKIPPED)]
