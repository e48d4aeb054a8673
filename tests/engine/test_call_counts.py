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
        "torch all_reduce 16 B": ((24, 18), (24, 19)),
        "torch all_gather 16 B, list": ((24, 18), (27, 21)),
        "torch all_gather_single 16 B": ((24, 18), (35, 21)),
        "mindspore all_gather_into_tensor 16 B": ((50, 34), (51, 34)),
        "megengine all_gather 16 B": ((38, 31), (39, 31)),
        "oneflow all_gather_into_tensor 16 B": ((35, 24), (46, 27)),
        "torch all_reduce 4 MB": ((50, 38), (50, 38)),
        "torch all_reduce, new shape": ((71, 50), (71, 51)),
        "tensorflow all_gather 16 B": ((51, 29), (56, 33)),
    },
    "processes": {
        "engine all_reduce 16 B, out=": ((31, 20), (31, 20)),
        "torch all_gather 16 B, list": ((6, 4), (6, 4)),
        "engine send 16 B": ((53, 34), (53, 34)),
        "engine recv 16 B": ((71, 60), (23, 21)),
        "torch all_reduce 16 B": ((6, 4), (6, 4)),
        "torch all_reduce, new shape": ((176, 90), (176, 90)),
        "torch all_reduce 2 x 16 B, coalesced": ((38, 27), (38, 27)),
        "mindspore all_gather_into_tensor 16 B": ((65, 43), (65, 43)),
        "megengine all_gather 16 B": ((53, 39), (53, 39)),
        "oneflow all_gather_into_tensor 16 B": ((49, 31), (49, 31)),
        "tensorflow all_gather 16 B": ((69, 40), (69, 40)),
    },
    "unchecked": {
        "engine all_reduce 16 B, out=": ((26, 16), (26, 16)),
        "torch all_gather 16 B, list": ((6, 4), (6, 4)),
        "engine send 16 B": ((61, 36), (61, 36)),
        "engine recv 16 B": ((76, 62), (76, 62)),
        "torch all_reduce 16 B": ((6, 4), (6, 4)),
        "torch all_reduce, new shape": ((178, 90), (178, 90)),
        "mindspore all_gather_into_tensor 16 B": ((61, 39), (61, 39)),
        "megengine all_gather 16 B": ((49, 35), (49, 35)),
        "oneflow all_gather_into_tensor 16 B": ((45, 27), (45, 27)),
        "tensorflow all_gather 16 B": ((64, 36), (64, 36)),
    },
    "gloo": {
        "engine all_reduce 16 B, out=": ((46, 29), (46, 29)),
        "torch all_gather 16 B, list": ((54, 34), (54, 34)),
        "engine send 16 B": ((53, 34), (53, 34)),
        "engine recv 16 B": ((80, 65), (80, 65)),
        "torch all_reduce 16 B": ((53, 34), (53, 34)),
        "torch all_reduce, new shape": ((147, 80), (147, 80)),
        "mindspore all_gather_into_tensor 16 B": ((79, 50), (79, 50)),
        "megengine all_gather 16 B": ((67, 46), (67, 46)),
        "oneflow all_gather_into_tensor 16 B": ((69, 40), (69, 40)),
        "tensorflow all_gather 16 B": ((84, 48), (84, 48)),
    },
    "unchecked gloo": {
        "engine all_reduce 16 B, out=": ((9, 8), (9, 8)),
        "torch all_gather 16 B, list": ((19, 14), (19, 14)),
        "engine send 16 B": ((61, 36), (61, 36)),
        "engine recv 16 B": ((76, 62), (76, 62)),
        "torch all_reduce 16 B": ((15, 13), (15, 13)),
        "torch all_reduce, new shape": ((95, 59), (95, 59)),
        "mindspore all_gather_into_tensor 16 B": ((43, 30), (43, 30)),
        "megengine all_gather 16 B": ((31, 26), (31, 26)),
        "oneflow all_gather_into_tensor 16 B": ((28, 19), (28, 19)),
        "tensorflow all_gather 16 B": ((79, 44), (79, 44)),
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
