"""The live ranks of the suite's tests, and the list of what is missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from collshim.conformance.effort import TRANSPORTS
from collshim.conformance.plugin import CHOSEN, COUNTS, OF_ONE_SUBJECT, Chosen
from collshim.conformance.pool import Pools
from collshim.conformance.report.listed import NOTHING
from collshim.conformance.report.plan import Plan
from collshim.conformance.report.runner import Asker
from collshim.conformance.report.terminal import counted, number
from collshim.conformance.rules import Rules
from collshim.conformance.subject import ADAPTERS

if TYPE_CHECKING:
    from collshim.conformance.patience import Patience

_SKIPPED = "Skipped: missing: "
_OWN = Chosen(Plan(ADAPTERS, TRANSPORTS), NOTHING)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """What is about one subject needs options that name it."""
    return True if collection_path.name == OF_ONE_SUBJECT and CHOSEN not in config.stash else None


@pytest.fixture(scope="module")
def pools(pytestconfig: pytest.Config) -> Iterator[Pools]:
    """Of collshim's adapters, or of the module that the command line names."""
    pools = pytestconfig.stash.get(CHOSEN, _OWN).plan.subject.pools()
    yield pools
    pools.close()


@pytest.fixture(scope="session")
def rules(pytestconfig: pytest.Config) -> Rules:
    """Collshim's own, or as the command line says."""
    return Rules(*pytestconfig.stash.get(CHOSEN, _OWN))


@pytest.fixture(scope="module")
def asker(pytestconfig: pytest.Config, pools: Pools) -> Asker:
    """Asks what the command line names."""
    return Asker(*pytestconfig.stash[CHOSEN], pools)


@pytest.fixture
def patience() -> Patience:
    from collshim.conformance.patience import Patience  # of hypothesis, which draws: a module's cases need none

    return Patience()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what no adapter offers yet; those tests did not run, and do not count as passed. Count the cases."""
    missing = Counter(path for reason in _reasons(terminalreporter) for path in reason.split(", "))
    if missing:
        terminalreporter.section(f"conformance: {number(len(missing), 'function')} missing")
        for path in sorted(missing):
            terminalreporter.line(f"missing: {path} ({number(missing[path], 'test')})")
    totals = _totals(terminalreporter)
    if totals:
        terminalreporter.section(f"conformance: {number(totals.total(), 'case')}")
        terminalreporter.line(counted(totals, len(missing)))


def _totals(terminalreporter: pytest.TerminalReporter) -> Counter[str]:
    """How many cases came out how, from the tests' reports, which workers send too."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    found = [counts for report in reports for name, counts in report.user_properties if name == COUNTS]
    return sum(map(Counter, found), Counter())


def _reasons(terminalreporter: pytest.TerminalReporter) -> list[str]:
    """What the skipped tests miss, from their reports, which workers send too."""
    skipped = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", [])]
    return [reason.removeprefix(_SKIPPED) for reason in skipped if reason.startswith(_SKIPPED)]
