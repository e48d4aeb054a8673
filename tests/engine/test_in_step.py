"""Ranks that notice a failure at different times still match in the same calls."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tests.engine.scenarios.in_step import COALESCED, SCENARIOS, SIZE, uneven
from tests.engine.worlds import Outcome, outcomes, values_of


@cache
def _found(transport: str) -> list[dict[str, Outcome]]:
    scenarios: dict[str, Any] = {name: scenario for name, (scenario, _) in SCENARIOS.items()}
    return outcomes(scenarios | COALESCED | {"uneven": uneven}, SIZE, transport)


@pytest.mark.parametrize("name", SCENARIOS)
def test_calls_after_a_failure_are_right(checked: str, name: str) -> None:
    assert values_of(_found(checked), name) == SCENARIOS[name][1]


@pytest.mark.parametrize("name", COALESCED)
def test_failure_in_coalesced_dtypes_is_reported_once(checked: str, name: str) -> None:
    told = [(found[0], found[1]) for found in values_of(_found(checked), name)]
    assert told == [(("not waited for",), ("MismatchError",))] + [(("MismatchError",), ())] * 2


@pytest.mark.parametrize("name", COALESCED)
def test_calls_after_failed_coalesced_arrays_are_right(checked: str, name: str) -> None:
    shapes = [(3, 2), (3, 4), (3, 1)] if "gather" in name else [(2,), (4,), (1,)]
    assert [found[2:] for found in values_of(_found(checked), name)] == [(shapes, 111.0)] * SIZE


def test_arrays_of_a_missing_dtype_are_a_mismatch(checked: str) -> None:
    text = "all_reduce_coalesced: ranks disagree on content: rank 0 has coalesced of 1 of 2: (2,), the others "
    assert values_of(_found(checked), "uneven") == [f"{text}coalesced of 1: (2,)"] * SIZE
