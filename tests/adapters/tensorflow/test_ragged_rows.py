"""Reductions of ragged tensors along an axis, and their operators: as in TensorFlow 2.21, run eagerly on CPU."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest

import collshim.tensorflow as tf

pytestmark = pytest.mark.unranked

ROWS = tf.ragged.constant([[1.0, 2.0], [3.0]])
WHOLE = tf.ragged.constant([[1, 2], [3], []])


@pytest.mark.parametrize(
    ("name", "of_rows", "across_rows", "of_all"),
    [
        ("sum", [3, 3], [4, 2], 6),
        ("mean", [1.5, 3], [2, 2], 2),
        ("max", [2, 3], [3, 2], 3),
        ("min", [1, 3], [1, 2], 1),
        ("prod", [2, 3], [3, 2], 6),
    ],
)
def test_ragged_tensors_are_reduced(name: str, of_rows: Any, across_rows: Any, of_all: Any) -> None:
    reduce = getattr(tf, f"reduce_{name}")
    for axis, expected in ((1, of_rows), (-1, of_rows), (0, across_rows), (None, of_all)):
        assert reduce(ROWS, axis=axis).numpy().tolist() == expected
    assert reduce(ROWS, 1, keepdims=True).numpy().tolist() == [[value] for value in of_rows]


def test_rows_without_values_have_each_reduction_s_start() -> None:
    assert tf.reduce_sum(WHOLE, 1).numpy().tolist() == [3, 3, 0]
    assert tf.reduce_prod(WHOLE, 1).numpy().tolist() == [2, 3, 1]
    assert tf.reduce_max(WHOLE, 1).numpy().tolist() == [2, 3, -(2**31)]
    assert tf.reduce_min(WHOLE, 1).numpy().tolist() == [1, 3, 2**31 - 1]
    assert tf.reduce_any(WHOLE > 1, axis=1).numpy().tolist() == [True, True, False]


def test_means_of_integers_are_float64() -> None:
    found = tf.reduce_mean(WHOLE, 1)
    assert found.dtype == tf.float64
    assert np.array_equal(found.numpy(), [1.5, 3, np.nan], equal_nan=True)


def test_other_axes_are_refused() -> None:
    with pytest.raises(ValueError, match="along axis 0 or 1, but got axis=2"):
        tf.reduce_sum(ROWS, 2)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (WHOLE * 2, [[2, 4], [6], []]),
        (WHOLE + WHOLE, [[2, 4], [6], []]),
        (2 - WHOLE, [[1, 0], [-1], []]),
        (WHOLE / 2, [[0.5, 1.0], [1.5], []]),
        (-WHOLE, [[-1, -2], [-3], []]),
        (WHOLE > 1, [[False, True], [True], []]),
    ],
)
def test_operators_keep_the_rows(found: Any, expected: Any) -> None:
    assert found.to_list() == expected


def test_operands_have_the_same_rows() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="the rows have the lengths"):
        operator.add(WHOLE, tf.ragged.constant([[1], [2, 3], []]))


def test_the_bounding_shape_holds_the_longest_row() -> None:
    assert WHOLE.bounding_shape().numpy().tolist() == [3, 2]
    assert WHOLE.bounding_shape(1, out_type=tf.int32).numpy() == 2
