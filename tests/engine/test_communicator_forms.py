"""Arrays of every kind and memory layout, and results that go into the caller's own memory."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from tests.engine.plays.forms import INTO, LENGTHS, PLACES, into
from tests.engine.plays.in_place import IN_PLACE, in_place
from tests.engine.plays.memory import MEMORY, memory
from tests.engine.worlds import TRANSPORTS, Outcome, outcomes, values_of

FAMILIES = {"into": into, "in place": in_place, "memory": memory}
SIZES = (1, 3)


@cache
def _found(family: str, transport: str, size: int) -> list[dict[str, Outcome]]:
    return outcomes(FAMILIES[family](), size, transport)


def _values(family: str, transport: str, size: int, name: str) -> list[Any]:
    return values_of(_found(family, transport, size), name)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("op", INTO)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_result_is_written_into_the_callers_memory_which_is_returned(
    transport: str, size: int, op: str, place: str, length: str
) -> None:
    assert _values("into", transport, size, f"{op}, {place}, {length}") == [(True, True)] * size


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("op", IN_PLACE)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_result_may_go_where_inputs_lie(transport: str, size: int, op: str, length: str) -> None:
    assert _values("in place", transport, size, f"{op}, {length}") == [(True, True)] * size


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("case", MEMORY)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_every_kind_and_layout_gives_the_same_numbers(transport: str, size: int, case: str, length: str) -> None:
    wanted = [MEMORY[case][1](rank, size) for rank in range(size)]
    assert _values("memory", transport, size, f"{case}, {length}") == wanted
