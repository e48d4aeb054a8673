"""Assertions that ranks make together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import collshim
from collshim.errors import RankError
from collshim.testing import assert_equal_across_ranks, assert_same_on_one_rank

pytestmark = pytest.mark.threads
EQUAL: dict[str, Any] = {
    "tensor": torch.arange(4.0),
    "not a number": torch.tensor([float("nan"), 1.0]),
    "array": np.arange(3),
    "text": "same",
    "nested": {"weight": torch.ones(2), "steps": [1, (2.5, None)]},
    "empty": torch.empty(0, 3),
}
UNEQUAL: dict[str, tuple[Callable[[int], Any], str]] = {
    "element": (
        lambda rank: torch.tensor([1.0, 2.0 + rank]),
        "rank 1: 3.0 at [1], should be 2.0; 1 of 2 elements differ",
    ),
    "factor": (
        lambda rank: torch.ones(3) * (rank + 1),
        "should be 1.0; 3 of 3 elements differ; all are 2 times as large",
    ),
    "shape": (lambda rank: torch.ones(2 + rank), "rank 1: shape (3,) of float32, should be shape (2,) of float32"),
    "dtype": (lambda rank: torch.ones(2, dtype=[torch.int32, torch.int64][rank]), "(2,) of int64, should be"),
    "number": (lambda rank: 1.5 + rank, "rank 1: 2.5, should be 1.5"),
    "text": (lambda rank: f"rank {rank}", "rank 1: 'rank 1', should be 'rank 0'"),
    "type": (lambda rank: [1, "1"][rank], "rank 1: '1', a str, should be 1"),
    "keys": (lambda rank: {["a", "b"][rank]: 1}, "rank 1: {'b': 1}, should be like {'a': 1}"),
    "item": (lambda rank: [1, 2 + rank], "rank 1: item 1 of 2: 3, should be 2"),
}


def failures(check: Callable[[], Any], size: int = 2) -> list[str]:
    """Return the assertion's message on each rank; empty if there is none."""

    def on_rank() -> str:
        try:
            check()
        except AssertionError as error:
            return str(error)
        return ""

    return collshim.launch(on_rank, size, timeout=200)


@pytest.mark.parametrize("value", EQUAL.values(), ids=EQUAL)
def test_equal_values_pass(value: Any) -> None:
    assert failures(lambda: assert_equal_across_ranks(value), 3) == ["", "", ""]


@pytest.mark.parametrize(("value", "text"), UNEQUAL.values(), ids=UNEQUAL)
def test_unequal_values_fail_on_all_ranks(value: Callable[[int], Any], text: str) -> None:
    found = failures(lambda: assert_equal_across_ranks(value(collshim.current().rank), name="the bias"))
    assert found[0] == found[1]
    assert found[0].startswith("the bias differs from that of rank 0:\n  rank 1: ")
    assert text in found[0]


def test_tolerance_is_kept() -> None:
    def check() -> None:
        assert_equal_across_ranks(torch.tensor([1.0 + collshim.current().rank * 1e-4]), rtol=1e-3)

    assert failures(check) == ["", ""]


def test_many_ranks_that_differ_are_counted() -> None:
    (text, *_) = failures(lambda: assert_equal_across_ranks(collshim.current().rank), 8)
    assert text.endswith("rank 5: 5, should be 0\n  and 2 more ranks")


def test_mean_is_the_same_on_one_rank_and_a_sum_is_not() -> None:
    def reduced(op: str) -> torch.Tensor:
        return collshim.current().communicator.all_reduce(torch.ones(3), op).wait()

    assert failures(lambda: assert_same_on_one_rank(reduced, "avg")) == ["", ""]
    texts = failures(lambda: assert_same_on_one_rank(reduced, "sum", name="the loss"))
    assert texts[0] == texts[1]
    assert texts[0].startswith("the loss differs from that on one rank:\n  rank 0: 2.0 at [0], should be 1.0;")
    assert "all are 2 times as large" in texts[0]


def test_error_of_the_function_is_passed_on() -> None:
    def wrong() -> None:
        raise ValueError("no result")

    with pytest.raises(RankError, match="no result"):
        collshim.launch(lambda: assert_same_on_one_rank(wrong), 2, timeout=200)
