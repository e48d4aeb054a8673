"""A call goes down once and up once: Python calls and moves between files stay within a bound."""

from __future__ import annotations

from functools import cache

import pytest

import collshim.torch.distributed as dist
from collshim.errors import again
from tests.engine.call_counts import Counts, count, measure

Bound = tuple[tuple[int, int], tuple[int, int]]

# By transport and call: calls and moves of the rank that arrives first, and of the one that arrives last.
# python -m tests.engine.test_call_counts prints the current ones.
BOUNDS: dict[str, dict[str, Bound]] = {
    "threads": {
        "engine all_reduce 16 B, out=": ((14, 10), (14, 11)),
        "engine all_reduce 4 B": ((14, 10), (14, 11)),
        "engine all_reduce 16 B, avg": ((14, 10), (15, 11)),
        "engine all_gather 16 B, out=list": ((20, 12), (27, 15)),
        "torch all_reduce 16 B": ((19, 14), (19, 15)),
        "torch all_gather 16 B, list": ((25, 16), (32, 19)),
        "torch all_gather_single 16 B": ((19, 14), (30, 17)),
        "mindspore all_gather_into_tensor 16 B": ((45, 31), (46, 31)),
        "megengine all_gather 16 B": ((36, 28), (37, 28)),
        "oneflow all_gather_into_tensor 16 B": ((43, 31), (54, 34)),
        "torch all_reduce 4 MB": ((50, 38), (50, 38)),
        "torch all_reduce, new shape": ((101, 69), (101, 70)),
        "tensorflow all_gather 16 B": ((64, 39), (69, 43)),
    },
    "processes": {
        "engine all_reduce 16 B, out=": ((36, 26), (36, 26)),
        "torch all_gather 16 B, list": ((50, 32), (50, 32)),
        "engine send 16 B": ((53, 34), (53, 34)),
        "engine recv 16 B": ((76, 52), (68, 44)),
        "torch all_reduce 16 B": ((41, 30), (41, 30)),
        "torch all_reduce, new shape": ((167, 98), (167, 98)),
        "mindspore all_gather_into_tensor 16 B": ((74, 53), (74, 53)),
        "megengine all_gather 16 B": ((63, 47), (63, 47)),
        "oneflow all_gather_into_tensor 16 B": ((70, 47), (70, 47)),
        "tensorflow all_gather 16 B": ((90, 59), (90, 59)),
    },
    "unchecked": {
        "engine all_reduce 16 B, out=": ((8, 6), (8, 6)),
        "torch all_gather 16 B, list": ((21, 13), (21, 13)),
        "engine send 16 B": ((61, 36), (61, 36)),
        "engine recv 16 B": ((65, 37), (65, 37)),
        "torch all_reduce 16 B": ((13, 9), (13, 9)),
        "torch all_reduce, new shape": ((124, 77), (124, 77)),
        "mindspore all_gather_into_tensor 16 B": ((44, 34), (44, 34)),
        "megengine all_gather 16 B": ((33, 28), (33, 28)),
        "oneflow all_gather_into_tensor 16 B": ((37, 27), (37, 27)),
        "tensorflow all_gather 16 B": ((87, 57), (87, 57)),
    },
}


@cache
def _measured(transport: str) -> dict[str, Counts]:
    return measure(transport, BOUNDS[transport])


@pytest.mark.parametrize(
    ("transport", "call"), [(transport, call) for transport in BOUNDS for call in BOUNDS[transport]]
)
def test_call_stays_within_its_bound(transport: str, call: str) -> None:
    counts, bound = _measured(transport)[call], BOUNDS[transport][call]
    for place, figures, limits in zip(("first", "last"), counts, bound, strict=True):
        text = f"{call}, {transport}, on the rank that comes {place}: {figures}, bound {limits}"
        assert figures.calls <= limits[0], text
        assert figures.moves <= limits[1], text


def test_call_into_the_engine_counts() -> None:
    assert count(lambda: again(None)) == (1, 0)


def test_call_into_an_adapter_counts() -> None:
    assert count(dist.is_available) == (1, 0)


def test_change_of_file_is_a_move() -> None:
    assert count(lambda: (again(None), dist.is_available(), again(None), again(None))) == (4, 2)


def test_call_elsewhere_does_not_count() -> None:
    assert count(lambda: sorted([2, 1], key=lambda number: -number)) == (0, 0)


def main() -> None:
    """Print the table."""
    for transport, bounds in BOUNDS.items():
        print(f'    "{transport}": {{')
        for name, counts in measure(transport, bounds).items():
            print(f'        "{name}": {tuple(tuple(count) for count in counts)},')
        print("    },")


if __name__ == "__main__":
    main()
