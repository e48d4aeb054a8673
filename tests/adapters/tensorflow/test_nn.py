"""``tf.nn.compute_average_loss`` and ``scale_regularization_loss`` match TensorFlow 2.21."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import Run, mirrored

average = tf.nn.compute_average_loss
LOSSES = tf.constant([1.0, 2.0])

VALUES: list[tuple[Callable[[], Any], float, str]] = [
    (lambda: average(LOSSES), 1.5, "float32"),
    (lambda: average(LOSSES, global_batch_size=4), 0.75, "float32"),
    (lambda: average(LOSSES, global_batch_size=tf.constant(4)), 0.75, "float32"),
    (lambda: average(LOSSES, global_batch_size=0), 0.0, "float32"),
    (lambda: average([1.0, 2.0], [1.0, 3.0], global_batch_size=4), 1.75, "float32"),
    (lambda: average([[1.0, 2.0], [3.0, 4.0]], [1.0, 2.0], global_batch_size=4), 4.25, "float32"),
    (lambda: average(LOSSES, [[1.0], [2.0]], global_batch_size=4), 1.25, "float32"),
    (lambda: average(tf.constant([1.0, 2.0], tf.float64), [1.0, 2.0]), 2.5, "float64"),
    (lambda: average(tf.constant([1, 2]), global_batch_size=4), 0.75, "float64"),
    (lambda: tf.nn.scale_regularization_loss([1.0, 2.0]), 3.0, "float32"),
]


@pytest.mark.parametrize(("compute", "wanted", "dtype"), VALUES)
def test_sum_is_divided_by_the_global_batch(compute: Callable[[], Any], wanted: float, dtype: str) -> None:
    found = compute()
    assert (float(found), str(found.dtype)) == (wanted, f"torch.{dtype}")


def test_replicas_divide_by_their_number(run_two: Run) -> None:
    found = run_two(lambda: [float(average(LOSSES)), float(tf.nn.scale_regularization_loss(3.0))])
    assert [[float(one) for one in several] for several in found] == [[0.75, 1.5]] * 2


REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: average(1.0), ValueError, "at least rank 1"),
    (lambda: average(LOSSES, global_batch_size=4.0), TypeError, "global_batch_size must be an integer"),
    (lambda: average(LOSSES, global_batch_size=[4, 4]), ValueError, "global_batch_size must be scalar"),
    (lambda: average(LOSSES, global_batch_size=-4), tf.errors.InvalidArgumentError, "must be non-negative, is -4"),
    (lambda: average(LOSSES, [1.0, 2.0, 3.0]), tf.errors.InvalidArgumentError, r"\[2\] vs. \[3\]"),
]


@pytest.mark.parametrize(("compute", "error", "told"), REFUSED)
def test_invalid_batch_is_refused(compute: Callable[[], Any], error: type[Exception], told: str) -> None:
    with pytest.raises(error, match=told):
        compute()


def test_cross_replica_batch_size_must_be_given() -> None:
    with mirrored(2).scope():
        assert float(average(LOSSES, global_batch_size=3)) == 1.0
        for compute in (average, tf.nn.scale_regularization_loss):
            with pytest.raises(RuntimeError, match="in cross replica context, while it was expected"):
                compute(LOSSES)
