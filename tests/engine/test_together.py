"""Objects, coalesced arrays, batches of sends and receives, and the NaN finder."""

from __future__ import annotations

from functools import cache, partial

import pytest
import torch

import collshim
from tests.engine.scenarios.together import CASES, CHECKED, NANS, SIZE, scenario
from tests.engine.worlds import Outcome, on_ranks, outcomes, values_of, world

pytestmark = pytest.mark.threads


@cache
def _found(transport: str) -> list[dict[str, Outcome]]:
    names = [name for name in CASES | NANS if "unchecked" not in transport or (name in CASES and name not in CHECKED)]
    return outcomes({name: partial(scenario, name) for name in names}, SIZE, transport)


@pytest.mark.parametrize("name", [name for name in CASES if name not in CHECKED])
def test_objects_coalesced_arrays_and_batches(transport: str, name: str) -> None:
    assert values_of(_found(transport), name) == CASES[name][1]


@pytest.mark.parametrize("name", CHECKED)
def test_compared_fields_of_coalesced_calls(checked: str, name: str) -> None:
    assert values_of(_found(checked), name) == CASES[name][1]


@pytest.mark.parametrize("name", NANS)
def test_nan_is_found_and_reported_on_every_rank(checked: str, name: str) -> None:
    assert values_of(_found(checked), name) == NANS[name][1]


def test_find_nan_needs_the_check() -> None:
    found = on_ranks(_looks_alone, 2, "unchecked")
    assert found == [f"find_nan: the check between ranks is off, should be on (rank {rank} of 2)" for rank in range(2)]


def _looks_alone() -> str:
    with collshim.options(find_nan=True), pytest.raises(collshim.ArgumentValueError) as caught:
        world().all_reduce(torch.ones(1))
    return str(caught.value)
