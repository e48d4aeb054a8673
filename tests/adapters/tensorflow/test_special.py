"""``tf.math``'s further functions; expected results are from TensorFlow 2.21 on CPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.tensorflow as tf

pytestmark = pytest.mark.unranked

X = tf.constant([-1.5, 0.0, 0.5])
Z = tf.constant([1 + 2j, 3j])


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda: tf.complex([1.0], [2.0]), [1 + 2j]),
        (lambda: tf.math.real(Z), [1.0, 0.0]),
        (lambda: tf.math.imag(Z), [2.0, 3.0]),
        (lambda: tf.math.conj(Z), [1 - 2j, -3j]),
        (lambda: tf.math.angle(X), [np.pi, 0.0, 0.0]),
        (lambda: tf.math.lgamma([1.0, 3.0]), [0.0, 0.6931472]),
        (lambda: tf.math.digamma([1.0]), [-0.5772157]),
        (lambda: tf.math.erfc(X), [1.9661052, 1.0, 0.4795001]),
        (lambda: tf.math.erfinv([0.5]), [0.4769363]),
        (lambda: tf.math.rint(X), [-2.0, 0.0, 0.0]),
        (lambda: tf.math.log_sigmoid([0.0]), [-0.6931472]),
        (lambda: tf.math.multiply_no_nan([np.nan, 1.0], [0.0, 2.0]), [0.0, 2.0]),
        (lambda: tf.math.reciprocal_no_nan(X), [-0.6666667, 0.0, 2.0]),
        (lambda: tf.math.xlogy([0.0, 2.0], [0.0, np.e]), [0.0, 2.0]),
        (lambda: tf.math.xlog1py([0.0, 2.0], [-1.0, np.e - 1]), [0.0, 2.0]),
        (lambda: tf.math.xdivy([0.0, 2.0], [0.0, 4.0]), [0.0, 0.5]),
        (lambda: tf.math.polyval([1.0, 2.0, 3.0], tf.constant([2.0])), [11.0]),
        (lambda: tf.math.reduce_euclidean_norm([3, 4]), 5),
        (lambda: tf.math.is_non_decreasing([1, 1]), True),
        (lambda: tf.math.is_strictly_increasing([1, 1]), False),
        (lambda: tf.math.zero_fraction(X), 1 / 3),
        (lambda: tf.math.in_top_k([0, 1], [[0.1, 0.9], [0.1, 0.9]], 1), [False, True]),
        (lambda: tf.math.confusion_matrix([1, 2], [2, 2]), [[0, 0, 0], [0, 0, 1], [0, 0, 1]]),
        (
            lambda: tf.math.confusion_matrix([0, 1], [1, 1], weights=[2.0, 3.0], dtype=tf.float32),
            [[0.0, 2.0], [0.0, 3.0]],
        ),
        (lambda: tf.math.softsign(X), [-0.6, 0.0, 0.3333333]),
    ],
)
def test_further_functions_of_numbers(compute: Callable[[], Any], expected: Any) -> None:
    found = compute()
    np.testing.assert_allclose(found.numpy(), np.array(expected), rtol=1e-5, atol=1e-6)
    assert isinstance(found, tf.Tensor)


def test_numbers_that_do_not_fit_are_refused() -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="classes are from 0 to 5"):
        tf.math.confusion_matrix([0, 5], [1, 1], num_classes=3)
    with pytest.raises(TypeError, match="incorrect types: int32 int32"):
        tf.complex([1], [2])
