"""Several works on their way at once."""

from __future__ import annotations

from functools import cache, partial

import pytest

from tests.engine.scenarios.in_flight import CASES, IN_FLIGHT, SIZE, scenario
from tests.engine.worlds import Outcome, outcomes, values_of


@cache
def _found(transport: str) -> list[dict[str, Outcome]]:
    scenarios = {f"{name}, {length}": partial(scenario, name, length) for name, length in CASES}
    return outcomes(scenarios, SIZE, transport)


@pytest.mark.parametrize(("name", "length"), CASES)
def test_works_are_independent_of_when_they_are_waited_for(transport: str, name: str, length: str) -> None:
    assert values_of(_found(transport), f"{name}, {length}") == IN_FLIGHT[name][1]
