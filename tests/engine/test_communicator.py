"""Every collective over every transport, world size and size of data; subgroups; works pending together."""

from __future__ import annotations

from functools import cache, partial

import pytest
import torch

from collshim.transports import compute
from collshim.transports.threads import carrier
from tests.engine.scenarios import groups, in_flight
from tests.engine.scenarios.values import OPS, SHAPES, expected, scenarios
from tests.engine.worlds import Outcome, compare, outcomes, values_of

pytestmark = pytest.mark.threads

SIZES = (1, 2, 3, 4)


@cache
def _found(transport: str, size: int) -> list[dict[str, Outcome]]:
    asked = {
        f"{op}, {name}": scenario
        for name, shape in SHAPES.items()
        for op, scenario in scenarios(OPS, shape, torch.float32).items()
    }
    return outcomes(asked, size, transport)


@pytest.mark.parametrize("op", OPS)
def test_collectives_return_what_they_promise(transport: str, op: str) -> None:
    compare(
        (
            f"{size} ranks, {op}, {name}",
            values_of(_found(transport, size), f"{op}, {name}"),
            expected(op, shape, torch.float32, "sum", size),
        )
        for size in SIZES
        for name, shape in SHAPES.items()
    )


@cache
def _shared(size: int) -> list[dict[str, Outcome]]:
    """Run between threads that share the work of every call, in blocks of a few elements."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(carrier, "SHARED_BYTES", 0)
        patch.setattr(compute, "BLOCK", 100)
        return outcomes(dict(scenarios(OPS, SHAPES["large"], torch.float32)), size, "threads")


@pytest.mark.parametrize("op", OPS)
def test_threads_that_share_the_work_agree(op: str) -> None:
    compare(
        (f"{size} ranks, {op}", values_of(_shared(size), op), expected(op, SHAPES["large"], torch.float32, "sum", size))
        for size in SIZES[1:]
    )


@cache
def _of_groups(transport: str) -> list[dict[str, Outcome]]:
    return outcomes({name: partial(groups.scenario, name) for name in groups.GROUPS}, groups.SIZE, transport)


@pytest.mark.parametrize("name", groups.GROUPS)
def test_subgroups(transport: str, name: str) -> None:
    assert values_of(_of_groups(transport), name) == groups.GROUPS[name][1]


@cache
def _in_flight(transport: str) -> list[dict[str, Outcome]]:
    asked = {f"{name}, {length}": partial(in_flight.scenario, name, length) for name, length in in_flight.CASES}
    return outcomes(asked, in_flight.SIZE, transport)


@pytest.mark.parametrize(("name", "length"), in_flight.CASES)
def test_works_can_be_waited_for_in_any_order(transport: str, name: str, length: str) -> None:
    assert values_of(_in_flight(transport), f"{name}, {length}") == in_flight.IN_FLIGHT[name][1]
