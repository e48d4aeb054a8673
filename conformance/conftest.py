"""The suite's fixtures, including its pools of live ranks, and the summary of missing functions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from collshim.conformance.effort import TRANSPORTS
from collshim.conformance.plugin import CHOSEN, COUNTS, OF_ONE_SUBJECT, Chosen
from collshim.conformance.pool import Pools
from collshim.conformance.report.failures import number
from collshim.conformance.report.listed import NOTHING
from collshim.conformance.report.plan import Plan
from collshim.conformance.report.runner import Asker
from collshim.conformance.report.terminal import counted
from collshim.conformance.rules import Rules
from collshim.conformance.subject import ADAPTERS

if TYPE_CHECKING:
    from collshim.conformance.patience import Patience

_SKIPPED = "Skipped: missing: "
_OWN = Chosen(Plan(ADAPTERS, TRANSPORTS), NOTHING)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skip files that test one subject, unless options name a subject."""
    return True if collection_path.name == OF_ONE_SUBJECT and CHOSEN not in config.stash else None


@pytest.fixture(scope="module")
def pools(pytestconfig: pytest.Config) -> Iterator[Pools]:
    """Pools for collshim's adapters, or for the module that the command line names."""
    pools = pytestconfig.stash.get(CHOSEN, _OWN).plan.subject.pools()
    yield pools
    pools.close()


@pytest.fixture(scope="session")
def rules(pytestconfig: pytest.Config) -> Rules:
    """Return the suite's default rules, or those of the command line."""
    return Rules(*pytestconfig.stash.get(CHOSEN, _OWN))


@pytest.fixture(scope="module")
def asker(pytestconfig: pytest.Config, pools: Pools) -> Asker:
    """Return the asker of the cases that the command line selects."""
    return Asker(*pytestconfig.stash[CHOSEN], pools)


@pytest.fixture
def patience() -> Patience:
    from collshim.conformance.patience import Patience  # needs hypothesis, which tests of fixed cases do not

    return Patience()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the missing functions, whose tests neither ran nor count as passed; count the cases."""
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
    """Count the cases by outcome, from the tests' reports; workers send their reports too."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, [])]
    found = [counts for report in reports for name, counts in report.user_properties if name == COUNTS]
    return sum(map(Counter, found), Counter())


def _reasons(terminalreporter: pytest.TerminalReporter) -> list[str]:
    """Return the missing functions of each skipped test, from the tests' reports; workers send their reports too."""
    skipped = [str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", [])]
    return [reason.removeprefix(_SKIPPED) for reason in skipped if reason.startswith(_SKIPPED)]
