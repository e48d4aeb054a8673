"""A call goes down once and up once: no more Python calls, and no more moves between files, than a bound."""

from __future__ import annotations

from functools import cache

import pytest

import collshim.torch.distributed as dist
from collshim.world import peek
from tests.engine.call_counts import Counts, count, measured

Bound = tuple[tuple[int, int], tuple[int, int]]

# By transport and call: calls and moves of the rank that comes first, and of the one that comes last.
# python -m tests.engine.call_counts prints today's.
BOUNDS: dict[str, dict[str, Bound]] = {
    "threads": {
        "engine all_reduce 16 B, out=": ((34, 20), (43, 24)),
        "engine all_reduce 4 B": ((36, 22), (45, 26)),
        "engine all_reduce 16 B, avg": ((61, 38), (108, 48)),
        "engine all_gather 16 B, out=list": ((91, 41), (130, 47)),
        "torch all_reduce 16 B": ((56, 37), (65, 41)),
        "torch all_gather 16 B, list": ((120, 57), (159, 63)),
        "torch all_gather_single 16 B": ((63, 40), (71, 44)),
        "mindspore all_gather_into_tensor 16 B": ((63, 41), (71, 45)),
        "megengine all_gather 16 B": ((54, 38), (62, 42)),
        "oneflow all_gather_into_tensor 16 B": ((59, 38), (67, 42)),
        "torch all_reduce 4 MB": ((133, 80), (146, 75)),  # if one rank does all of the shared work
    },
    "processes": {
        "engine all_reduce 16 B, out=": ((103, 45), (103, 45)),
        "torch all_gather 16 B, list": ((153, 64), (153, 64)),
        "engine send 16 B": ((48, 27), (48, 27)),
        "engine recv 16 B": ((73, 41), (65, 34)),
    },
    "unchecked": {
        "engine all_reduce 16 B, out=": ((8, 4), (8, 4)),
        "torch all_gather 16 B, list": ((128, 56), (128, 56)),
        "engine send 16 B": ((56, 30), (56, 30)),
        "engine recv 16 B": ((61, 32), (61, 32)),
    },
}


@cache
def _measured(transport: str) -> dict[str, Counts]:
    return measured(transport, BOUNDS[transport])


@pytest.mark.parametrize(
    ("transport", "call"), [(transport, call) for transport in BOUNDS for call in BOUNDS[transport]]
)
def test_a_call_takes_no_more_than_its_bound(transport: str, call: str) -> None:
    counts, bound = _measured(transport)[call], BOUNDS[transport][call]
    for place, figures, limits in zip(("first", "last"), counts, bound, strict=True):
        text = f"{call}, {transport}, on the rank that comes {place}: {figures}, bound {limits}"
        assert figures.calls <= limits[0], text
        assert figures.moves <= limits[1], text


def test_a_call_into_the_engine_counts() -> None:
    assert count(peek) == (1, 0)


def test_a_call_into_an_adapter_counts() -> None:
    assert count(dist.is_available) == (1, 0)


def test_a_way_from_one_file_to_another_is_a_move() -> None:
    assert count(lambda: (peek(), dist.is_available(), peek(), peek())) == (4, 2)


def test_a_call_elsewhere_does_not_count() -> None:
    assert count(lambda: sorted([2, 1], key=lambda number: -number)) == (0, 0)
