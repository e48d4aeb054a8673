"""TensorShape, variables' assignments and parts, and dataset methods: TensorFlow 2.21 gave the values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.tensorflow as tf

PAIR, OPEN, UNKNOWN = tf.TensorShape([2, 3]), tf.TensorShape([None, 3]), tf.TensorShape(None)


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (lambda: operator.add([1], PAIR), "(1, 2, 3)"),
        (lambda: UNKNOWN.with_rank(2), "(None, None)"),
        (lambda: PAIR.with_rank_at_least(1), "(2, 3)"),
        (lambda: PAIR.most_specific_compatible_shape([2, 4]), "(2, None)"),
        (lambda: PAIR.most_specific_compatible_shape([2]), "<unknown>"),
        (lambda: UNKNOWN[0:2], "(None, None)"),
        (lambda: UNKNOWN[1:], "<unknown>"),
    ],
)
def test_shape(found: Callable[[], Any], wanted: str) -> None:
    assert str(found()) == wanted


def test_truth_and_subtypes_of_shapes() -> None:
    assert [bool(tf.TensorShape([])), bool(PAIR), bool(UNKNOWN)] == [True, True, False]
    assert [PAIR.is_subtype_of(OPEN), OPEN.is_subtype_of(PAIR), PAIR.is_subtype_of(UNKNOWN)] == [True, False, True]
    assert PAIR.is_subtype_of([2, 3]) is False


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: PAIR.with_rank(3), ValueError),
        (lambda: PAIR.with_rank_at_least(3), ValueError),
        (lambda: PAIR.with_rank_at_most(1), ValueError),
        (lambda: PAIR.assert_has_rank(3), ValueError),
        (lambda: PAIR.assert_same_rank([3]), ValueError),
        (lambda: OPEN.assert_is_fully_defined(), ValueError),
        (lambda: tf.TensorShape([-1]), ValueError),
        (lambda: tf.TensorShape([2.0]), TypeError),
        (lambda: tf.zeros([2]).set_shape([3]), ValueError),
        (lambda: tf.Variable([1.0]).set_shape([3]), ValueError),
    ],
)
def test_shape_is_refused(call: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()
    tf.zeros([2, 3]).set_shape([None, 3])


def test_assigned_arrays_take_the_dtype_of_the_variable() -> None:
    variable = tf.Variable([1.0, 2.0])
    variable.assign(np.array([3, 4]))
    assert variable.assign_add(np.array([0.5, 0.5])).numpy().tolist() == [3.5, 4.5]
    for delta in (1.0, [1.0], [1.0, 2.0, 3.0]):
        with pytest.raises(tf.errors.InvalidArgumentError):
            variable.assign_sub(delta)


@pytest.mark.parametrize("sign", ["+=", "-=", "*=", "/=", "**="])
def test_augmented_assignment_to_a_variable_is_refused(sign: str) -> None:
    with pytest.raises(RuntimeError, match=r"with `tf\.Variable`s is not supported"):
        exec(f"variable {sign} 2", {"variable": tf.Variable([1.0])})


@pytest.mark.parametrize(
    ("index", "value", "wanted"),
    [
        (0, 5.0, [5.0, 2.0, 3.0]),
        (slice(0, 2), [7.0, 8.0], [7.0, 8.0, 3.0]),
        (slice(1, 3), 0.0, [1.0, 0.0, 0.0]),
        (slice(None, None, -1), [7.0, 8.0, 9.0], [9.0, 8.0, 7.0]),
    ],
)
def test_part_of_a_variable_is_assigned(index: Any, value: Any, wanted: list[float]) -> None:
    variable = tf.Variable([1.0, 2.0, 3.0])
    assert variable[index].assign(value).numpy().tolist() == variable.numpy().tolist() == wanted
    with pytest.raises(tf.errors.InvalidArgumentError):
        variable[0].assign([1.0, 2.0])


def test_datasets_are_zipped_in_a_dict_and_batched_in_turn() -> None:
    numbers = tf.data.Dataset.range(5)
    (first, *_) = tf.data.Dataset.zip({"a": numbers, "b": (numbers, numbers)}).as_numpy_iterator()
    assert first == {"a": 0, "b": (0, 0)}
    assert [one.tolist() for one in numbers.batch(3).rebatch([1, 2]).as_numpy_iterator()] == [[0], [1, 2], [3], [4]]
    assert numbers.as_numpy_iterator().next() == 0
    spec = tf.data.Dataset.from_tensors(tf.zeros([2, 3])).padded_batch(2).element_spec
    assert spec.shape.as_list() == [None, 2, 3]
    with pytest.raises(tf.errors.InvalidArgumentError):
        list(numbers.batch(3).batch(2))


def test_ragged_rows_are_cut_to_a_shape() -> None:
    rows = tf.ragged.constant([[1, 2], [3]])
    assert rows.to_tensor(shape=[None, 3]).numpy().tolist() == [[1, 2, 0], [3, 0, 0]]
    assert rows.to_tensor(9, shape=[1, 1]).numpy().tolist() == [[1]]
