"""Subgroups."""

from __future__ import annotations

from functools import cache, partial

import pytest

from tests.engine.scenarios.groups import GROUPS, SIZE, scenario
from tests.engine.worlds import Outcome, outcomes, values_of


@cache
def _found(transport: str) -> list[dict[str, Outcome]]:
    return outcomes({name: partial(scenario, name) for name in GROUPS}, SIZE, transport)


@pytest.mark.parametrize("name", GROUPS)
def test_subgroups(transport: str, name: str) -> None:
    assert values_of(_found(transport), name) == GROUPS[name][1]
