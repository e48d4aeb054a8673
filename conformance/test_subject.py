"""Runs the cases of ``collshim conformance`` on every function of the selected subject, with the same rules."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from collshim.conformance.bindings.binding import Binding
from collshim.conformance.bindings.rank_context import placed
from collshim.conformance.missing import skip
from collshim.conformance.plugin import CHOSEN, COUNTS
from collshim.conformance.report.failures import failures
from collshim.conformance.report.results import Grid
from collshim.conformance.report.runner import Asker
from collshim.conformance.report.terminal import total

# torch 2.13 renamed functions and plans to drop others; the old names still work, with a warning.
pytestmark = pytest.mark.filterwarnings("ignore")


class _Silent:
    """A progress display that shows nothing, because pytest shows the progress."""

    def start(self, total: int) -> None:
        """Ignore the number of cases to come."""

    def step(self, what: str, count: int = 1) -> None:
        """Ignore that ``count`` cases of ``what`` are done."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    plan = metafunc.config.stash[CHOSEN].plan
    pairs = [(binding, transport) for transport in plan.transports for binding in plan.bindings()]
    metafunc.parametrize(("binding", "transport"), pairs, ids=[f"{one.name}-{ranks}" for one, ranks in pairs])


def test_cases_agree(
    asker: Asker, binding: Binding, transport: str, record_property: Callable[[str, object], None]
) -> None:
    grid, cases = Grid({}), asker.plan.cases(binding, transport)
    function = grid.cell(binding.collective, binding.framework.name, transport).function(binding.name)
    try:
        asker.ask(function, binding, transport, cases, _Silent())
    finally:
        record_property(COUNTS, dict(total(grid, recorded=False)))
    if function.missing:
        skip([placed(asker.pools.prefix, binding.path)])
    if not cases:
        pytest.skip("none of its cases was selected")
    if len(asker.plan.transports) == 1:
        grid.stale += asker.verdicts.stale(binding)
    if grid.failed or grid.stale:
        pytest.fail("\n".join(failures(grid)), pytrace=False)
