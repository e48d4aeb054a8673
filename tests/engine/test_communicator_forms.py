"""Arrays of every kind and memory layout, and results in the caller's own memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import pytest

from tests.engine.scenarios.forms import INTO, LENGTHS, OTHER_DTYPES, PLACES, into
from tests.engine.scenarios.in_place import IN_PLACE, in_place
from tests.engine.scenarios.memory import MEMORY, memory
from tests.engine.worlds import Outcome, compare, outcomes, values_of

FAMILIES = {"into": into, "in place": in_place, "memory": memory}
SIZES = (1, 3)


@cache
def _found(family: str, transport: str, size: int) -> list[dict[str, Outcome]]:
    return outcomes(FAMILIES[family](), size, transport)


def _compare(family: str, transport: str, names: Iterable[str], expected: Callable[[int], list[Any]]) -> None:
    compare(
        (f"{size} ranks, {name}", values_of(_found(family, transport, size), name), expected(size))
        for size in SIZES
        for name in names
    )


@pytest.mark.parametrize("op", [*INTO, OTHER_DTYPES])
def test_result_is_written_to_out_and_returned(transport: str, op: str) -> None:
    names = [f"{op}, {place}, {length}" for place in PLACES for length in LENGTHS]
    _compare("into", transport, names, lambda size: [(True, True)] * size)


@pytest.mark.parametrize("op", IN_PLACE)
def test_result_can_overlap_inputs(transport: str, op: str) -> None:
    names = [f"{op}, {length}" for length in LENGTHS]
    _compare("in place", transport, names, lambda size: [(True, True)] * size)


@pytest.mark.parametrize("case", MEMORY)
def test_kinds_and_layouts_give_the_same_numbers(transport: str, case: str) -> None:
    names = [f"{case}, {length}" for length in LENGTHS]
    _compare("memory", transport, names, lambda size: [MEMORY[case][1](rank, size) for rank in range(size)])
