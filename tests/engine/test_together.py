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


@pytest.mark.parametrize("op", ["sum", "avg", "max"])
def test_repeated_coalesced_reductions_keep_every_bit(transport: str, op: str) -> None:
    expected = {"sum": 2 * _ODD, "avg": _ODD, "max": _ODD}[op]
    assert on_ranks(_reduces_again, 2, transport, op) == [[[expected - n] * 3 for n in range(3)]] * 2


_ODD = float((1 << 22) - 1)
"""A number that needs the full width of float32, twice as large too."""


def _reduces_again(op: str) -> list[list[float]]:
    comm, seen = world(), []
    for n in range(3):
        shift = n / 2 if op == "sum" else float(n)
        tensors = [torch.full((2,), _ODD - shift), torch.full((1,), _ODD - shift)]
        comm.all_reduce_coalesced(tensors, op, out=tensors).wait()
        seen.append([value for tensor in tensors for value in tensor.tolist()])
    return seen
