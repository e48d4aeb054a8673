"""What the replicas of a ``MirroredStrategy`` must agree on before any exchange."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import context, mirrored, replica

COLLECTIVES: dict[str, Callable[[Any], Any]] = {
    "all_gather": lambda value: context().all_gather(value, axis=0),
    "all_reduce": lambda value: context().all_reduce("SUM", value),
}


def leaves(count: int) -> list[torch.Tensor]:
    return [torch.ones(1) for _ in range(count)]


@pytest.mark.parametrize("collective", COLLECTIVES)
@pytest.mark.parametrize("counts", [(1, 2), (2, 1), (0, 1), (2, 0)])
def test_unequal_leaf_counts_are_an_assertion_error(collective: str, counts: tuple[int, int]) -> None:
    said = rf"{collective}: .* lengths: len\(v\) == {counts[1]}, len\(v0\) == {counts[0]}: replica 1 gives {counts[1]}"
    for kind in (AssertionError, collshim.ArgumentError):
        with pytest.raises(kind, match=said):
            mirrored(2).run(lambda: COLLECTIVES[collective](leaves(counts[replica()])))


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_replicas_with_unequal_leaf_counts_exchange_no_leaf(collective: str) -> None:
    """The first replica gets no result: the other one is refused before it gives its first leaf."""
    got: list[Any] = []

    def fn() -> None:
        got.append(COLLECTIVES[collective](leaves(replica() + 1)))

    with pytest.raises(AssertionError):
        mirrored(2).run(fn)
    assert got == []


def test_nests_are_compared_call_by_call() -> None:
    def fn() -> list[int]:
        found = [COLLECTIVES["all_gather"](leaves(count)) for count in (1, 3, 0, 2)]
        return [len(one) for one in found]

    assert mirrored(3).run(fn) == [1, 3, 0, 2]


def test_different_axes_are_an_invalid_argument() -> None:
    for kind in (tf.errors.InvalidArgumentError, collshim.MismatchError):
        with pytest.raises(
            kind, match=r"all_gather: the replicas disagree on axis: replica [01] has [01], replica [01]"
        ):
            mirrored(2).run(lambda: context().all_gather(torch.ones(1, 2), axis=replica()))
