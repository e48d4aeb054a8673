"""The live ranks of the suite's tests, and the list of what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from collshim.conformance.patience import Patience
from collshim.conformance.plugin import SUBJECT
from collshim.conformance.pool import Pools
from collshim.conformance.subject import ADAPTERS

REPLAYED = "replayed"
"""The property that counts what a test made again of recordings."""
_SKIPPED = "Skipped: missing: "


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
    """Name what no adapter offers yet, whose tests did not run, and count the recordings."""
    replayed = [text for name, text in _properties(terminalreporter) if name == REPLAYED]
    if replayed:
        terminalreporter.section("conformance: recordings")
        for text in sorted(replayed):
            terminalreporter.line(text)
    missing = Counter(path for reason in _reasons(terminalreporter) for path in reason.split(", "))
    if missing:
        terminalreporter.section(f"conformance: {len(missing)} functions missing")
        for path in sorted(missing):
            terminalreporter.line(f"missing: {path} ({missing[path]} tests)")


def _properties(terminalreporter: pytest.TerminalReporter) -> list[tuple[str, object]]:
    return [one for report in terminalreporter.stats.get("passed", []) for one in report.user_properties]


def _reasons(terminalreporter: pytest.TerminalReporter) -> list[str]:
    """What the skipped tests miss; told by reports, which workers send, as by nothing else."""
    skipped = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", [])]
    return [reason.removeprefix(_SKIPPED) for reason in skipped if reason.startswith(_SKIPPED)]
