"""The reference: values written by hand, and laws that relate the collectives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from collshim.conformance import reference
from collshim.conformance.cases import Case
from collshim.conformance.dtypes import BFLOAT16, computable, typed

Part = NDArray[Any]

PARTS = [np.array([1, 2]), np.array([10, 20]), np.array([100, 200])]
ROWS = [[np.array([10 * sender + receiver]) for receiver in range(3)] for sender in range(3)]
sizes = st.integers(1, 5)
seeds = st.integers(0, 99)


def given_by(size: int, seed: int, shape: tuple[int, ...] = (2,)) -> list[Part]:
    return Case("all_gather", size=size, shape=shape, seed=seed, dtype="int64").arrays()


def rows_by(size: int, seed: int) -> list[list[Part]]:
    return Case("all_to_all", size=size, shape=(2,), seed=seed, dtype="int64").parts()


@pytest.mark.parametrize(
    ("op", "wanted"), [("sum", [111, 222]), ("prod", [1000, 8000]), ("min", [1, 2]), ("max", [100, 200])]
)
def test_all_reduce_gives_every_rank_the_reduction(op: str, wanted: list[int]) -> None:
    assert [reduced.tolist() for reduced in reference.all_reduce(PARTS, op)] == [wanted] * 3


def test_avg_divides_the_sum() -> None:
    assert reference.all_reduce([np.array([1.0]), np.array([2.0])], "avg")[1].tolist() == [1.5]


def test_integer_average_is_exact_or_refused() -> None:
    near_the_limit = [np.array([3 * (2**61 - 1)]), np.array([3]), np.array([-9])]
    assert reference.all_reduce(near_the_limit, "avg")[0].tolist() == [2**61 - 3]
    with pytest.raises(ValueError, match=r"avg: the sums are \[2\], should be multiples of 3"):
        reference.all_reduce([np.array([2]), np.array([1]), np.array([-1])], "avg")


def test_bfloat16_is_reduced_by_value() -> None:
    parts = [typed(np.array(values), "bfloat16") for values in ([1.5, 2.0**-133], [254.0, 2.0**-133])]
    assert computable(reference.all_reduce(parts)[0]).tolist() == [256.0, 2.0**-132]
    assert reference.all_reduce(parts)[0].dtype == BFLOAT16


def test_sums_are_rounded_in_rank_order() -> None:
    parts = [np.array([value], "float16") for value in (2048, 1, 1)]
    assert reference.all_reduce(parts)[0].tolist() == [2048]
    assert reference.all_reduce(parts[::-1])[0].tolist() == [2050]


def test_small_integers_wrap_and_booleans_join() -> None:
    assert reference.all_reduce([np.array([100], "int8")] * 2)[0].tolist() == [-56]
    assert reference.all_reduce([np.array([True]), np.array([False])])[0].tolist() == [True]


def test_reduce_gives_only_the_root_the_reduction() -> None:
    first, second, third = reference.reduce(PARTS, root=1)
    assert (first, third) == (None, None)
    assert_array_equal(second, [111, 222])


def test_broadcast_gives_every_rank_the_roots_part() -> None:
    assert [part.tolist() for part in reference.broadcast([None, PARTS[1], None], root=1)] == [[10, 20]] * 3


def test_all_gather_gives_all_parts_in_order() -> None:
    wanted = [[1, 2], [10, 20], [100, 200]]
    assert [[part.tolist() for part in held] for held in reference.all_gather(PARTS)] == [wanted] * 3


def test_gather_gives_only_the_root_all_parts() -> None:
    held = reference.gather(PARTS, root=2)
    assert held[:2] == [None, None]
    assert [part.tolist() for part in held[2] or []] == [[1, 2], [10, 20], [100, 200]]


def test_scatter_gives_each_rank_its_part() -> None:
    assert [part.tolist() for part in reference.scatter([None, PARTS, None], root=1)] == [
        [1, 2],
        [10, 20],
        [100, 200],
    ]


def test_root_without_input_is_refused() -> None:
    with pytest.raises(ValueError, match="root 0"):
        reference.broadcast([None, PARTS[0]])
    with pytest.raises(ValueError, match="root 1"):
        reference.scatter([PARTS, None, PARTS], root=1)


def test_reduce_scatter_gives_each_rank_its_reduction() -> None:
    assert [part.tolist() for part in reference.reduce_scatter(ROWS)] == [[30], [33], [36]]


def test_all_to_all_transposes_senders_and_receivers() -> None:
    held = [[part.tolist() for part in row] for row in reference.all_to_all(ROWS)]
    assert held == [[[0], [10], [20]], [[1], [11], [21]], [[2], [12], [22]]]


def test_all_to_all_moves_unequal_parts_whole() -> None:
    rows = [[np.arange(sender + receiver) for receiver in range(2)] for sender in range(2)]
    assert [[len(part) for part in row] for row in reference.all_to_all(rows)] == [[0, 1], [1, 2]]


def test_ring_moves_every_part_one_rank_on() -> None:
    assert [part.tolist() for part in reference.ring(PARTS)] == [[100, 200], [1, 2], [10, 20]]


def test_parts_are_concatenated_stacked_and_split() -> None:
    square = np.array([[1, 2], [3, 4]])
    assert reference.concatenated([square, square], 1).tolist() == [[1, 2, 1, 2], [3, 4, 3, 4]]
    assert reference.concatenated([np.array(1), np.array(2)]).tolist() == [1, 2]
    assert reference.stacked([square, square]).shape == (2, 2, 2)
    assert [part.tolist() for part in reference.split(square, 2, axis=1)] == [[[1], [3]], [[2], [4]]]


def test_results_share_no_memory_with_inputs() -> None:
    held = [*reference.broadcast(PARTS), *reference.ring(PARTS), *reference.all_gather(PARTS)[0]]
    assert not any(np.shares_memory(part, given) for part in held for given in PARTS)


@settings(deadline=None, derandomize=True)
@given(size=sizes, seed=seeds)
def test_all_gather_is_gather_then_broadcast(size: int, seed: int) -> None:
    parts = given_by(size, seed)
    gathered = reference.gather(parts, root=size - 1)[size - 1]
    assert gathered is not None
    whole = reference.broadcast([reference.stacked(gathered)] * size)
    for held, wanted in zip(reference.all_gather(parts), whole, strict=True):
        assert_array_equal(reference.stacked(held), wanted)


@settings(deadline=None, derandomize=True)
@given(size=sizes, seed=seeds, op=st.sampled_from(("sum", "prod", "min", "max")))
def test_all_reduce_is_reduce_scatter_then_all_gather(size: int, seed: int, op: str) -> None:
    parts = given_by(size, seed, shape=(size, 2))
    scattered = reference.reduce_scatter([reference.split(part, size) for part in parts], op)
    for reduced, pieces in zip(reference.all_reduce(parts, op), reference.all_gather(scattered), strict=True):
        assert_array_equal(reduced, reference.concatenated(pieces))


@settings(deadline=None, derandomize=True)
@given(size=sizes, seed=seeds)
def test_all_to_all_twice_is_the_identity(size: int, seed: int) -> None:
    rows = rows_by(size, seed)
    for held, wanted in zip(reference.all_to_all(reference.all_to_all(rows)), rows, strict=True):
        assert_array_equal(held, wanted)


@settings(deadline=None, derandomize=True)
@given(seed=seeds, order=st.permutations(range(4)))
def test_permuting_ranks_permutes_results(seed: int, order: list[int]) -> None:
    parts, rows = given_by(4, seed), rows_by(4, seed)
    moved = [[rows[sender][receiver] for receiver in order] for sender in order]
    plain = reference.all_to_all(rows)
    for rank, held in enumerate(reference.all_to_all(moved)):
        assert_array_equal(held, [plain[order[rank]][sender] for sender in order])
    assert_array_equal(reference.all_reduce([parts[rank] for rank in order]), reference.all_reduce(parts))
    assert_array_equal(reference.all_gather([parts[rank] for rank in order])[0], [parts[r] for r in order])


@settings(deadline=None, derandomize=True)
@given(size=sizes, seed=seeds)
def test_rooted_calls_match_rows_of_others(size: int, seed: int) -> None:
    parts, rows = given_by(size, seed), rows_by(size, seed)
    assert_array_equal(reference.reduce(parts, root=0)[0], reference.all_reduce(parts)[0])
    scattered = [reference.scatter(rows, root) for root in range(size)]
    for receiver, held in enumerate(reference.all_to_all(rows)):
        assert_array_equal(held, [scattered[sender][receiver] for sender in range(size)])
