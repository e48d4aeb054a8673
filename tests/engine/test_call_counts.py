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
        "engine all_reduce 16 B, out=": ((17, 13), (17, 14)),
        "engine all_reduce 4 B": ((17, 13), (17, 14)),
        "engine all_reduce 16 B, avg": ((17, 13), (18, 14)),
        "engine all_gather 16 B, out=list": ((18, 13), (21, 16)),
        "torch all_reduce 16 B": ((25, 18), (25, 19)),
        "torch all_gather 16 B, list": ((25, 18), (28, 21)),
        "torch all_gather_single 16 B": ((25, 18), (36, 21)),
        "mindspore all_gather_into_tensor 16 B": ((52, 36), (53, 36)),
        "megengine all_gather 16 B": ((39, 31), (40, 31)),
        "oneflow all_gather_into_tensor 16 B": ((36, 24), (47, 27)),
        "torch all_reduce 4 MB": ((50, 38), (50, 38)),
        "torch all_reduce, new shape": ((72, 50), (72, 51)),
        "tensorflow all_gather 16 B": ((51, 29), (56, 33)),
    },
    "processes": {
        "engine all_reduce 16 B, out=": ((32, 25), (11, 7)),
        "torch all_gather 16 B, list": ((6, 4), (6, 4)),
        "engine send 16 B": ((53, 34), (53, 34)),
        "engine recv 16 B": ((71, 60), (23, 21)),
        "torch all_reduce 16 B": ((6, 4), (6, 4)),
        "torch all_reduce 4 MB": ((6, 4), (6, 4)),
        "torch all_reduce 4 MB, async_op": ((49, 37), (49, 37)),
        "torch all_reduce, new shape": ((180, 94), (180, 94)),
        "torch all_reduce 2 x 16 B, coalesced": ((38, 27), (38, 27)),
        "mindspore all_gather_into_tensor 16 B": ((66, 50), (48, 32)),
        "megengine all_gather 16 B": ((53, 44), (34, 25)),
        "oneflow all_gather_into_tensor 16 B": ((50, 36), (29, 18)),
        "tensorflow all_gather 16 B": ((75, 46), (75, 46)),
    },
    "unchecked": {
        "engine all_reduce 16 B, out=": ((29, 23), (8, 4)),
        "torch all_gather 16 B, list": ((6, 4), (6, 4)),
        "engine send 16 B": ((61, 36), (61, 36)),
        "engine recv 16 B": ((76, 62), (76, 62)),
        "torch all_reduce 16 B": ((6, 4), (6, 4)),
        "torch all_reduce, new shape": ((181, 93), (181, 93)),
        "mindspore all_gather_into_tensor 16 B": ((63, 47), (45, 29)),
        "megengine all_gather 16 B": ((50, 41), (31, 22)),
        "oneflow all_gather_into_tensor 16 B": ((47, 34), (26, 15)),
        "tensorflow all_gather 16 B": ((70, 41), (70, 41)),
    },
    "gloo": {
        "engine all_reduce 16 B, out=": ((47, 29), (47, 29)),
        "torch all_gather 16 B, list": ((56, 34), (56, 34)),
        "engine send 16 B": ((53, 34), (53, 34)),
        "engine recv 16 B": ((80, 65), (80, 65)),
        "torch all_reduce 16 B": ((55, 34), (55, 34)),
        "torch all_reduce, new shape": ((149, 80), (149, 80)),
        "mindspore all_gather_into_tensor 16 B": ((82, 53), (82, 53)),
        "megengine all_gather 16 B": ((69, 47), (69, 47)),
        "oneflow all_gather_into_tensor 16 B": ((71, 40), (71, 40)),
        "tensorflow all_gather 16 B": ((85, 49), (85, 49)),
    },
    "unchecked gloo": {
        "engine all_reduce 16 B, out=": ((10, 8), (10, 8)),
        "torch all_gather 16 B, list": ((20, 14), (20, 14)),
        "engine send 16 B": ((61, 36), (61, 36)),
        "engine recv 16 B": ((76, 62), (76, 62)),
        "torch all_reduce 16 B": ((16, 13), (16, 13)),
        "torch all_reduce, new shape": ((96, 60), (96, 60)),
        "mindspore all_gather_into_tensor 16 B": ((44, 32), (44, 32)),
        "megengine all_gather 16 B": ((31, 26), (31, 26)),
        "oneflow all_gather_into_tensor 16 B": ((28, 19), (28, 19)),
        "tensorflow all_gather 16 B": ((80, 44), (80, 44)),
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
