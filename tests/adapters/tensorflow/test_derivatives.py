"""Gradients where functions have no derivative, or several: TensorFlow 2.21 gave the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.tensorflow as tf


def gradients(function: Callable[..., Any], *values: Any) -> list[Any]:
    inputs = [tf.constant(value) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = function(*inputs)
    found = tape.gradient(result, inputs)
    return [None if one is None else one.numpy().tolist() for one in found]


@pytest.mark.parametrize(
    ("function", "values", "wanted"),
    [
        (tf.maximum, ([1.0, 2.0], [1.0, 3.0]), [[1.0, 0.0], [0.0, 1.0]]),
        (tf.minimum, ([1.0, 2.0], [1.0, 3.0]), [[1.0, 1.0], [0.0, 0.0]]),
        (lambda x: tf.clip_by_value(x, 0.0, 1.0), ([-1.0, 0.0, 0.5, 1.0, 2.0],), [[0.0, 1.0, 1.0, 1.0, 0.0]]),
        (lambda x: tf.where(x > 0, tf.sqrt(x), x), ([0.0, 4.0],), [[1.0, 0.25]]),
        (lambda x: tf.where(x > 0, tf.math.rsqrt(x), x), ([0.0, 4.0],), [[1.0, -0.0625]]),
        (lambda x: tf.where(x > 0, tf.math.reciprocal(x), x), ([0.0, 4.0],), [[1.0, -0.0625]]),
        (tf.sqrt, ([0.0, 1.0],), [[np.inf, 0.5]]),
        (lambda x: 0.0 * tf.norm(x), ([0.0, 0.0],), [[0.0, 0.0]]),
        (tf.floor, ([1.5],), [None]),
        (tf.round, ([1.5],), [None]),
        (tf.math.ceil, ([1.5],), [None]),
        (lambda x, y: x // y, ([3.0], [2.0]), [None, None]),
        (lambda x, y: x % y, ([3.0], [2.0]), [[1.0], [-1.0]]),
        (tf.sign, ([1.5],), [[0.0]]),
        (tf.constant, ([1.5],), [[1.0]]),
        (lambda x: x[::-1] * x, ([1.0, 2.0],), [[4.0, 2.0]]),
        (lambda x: tf.gather(x, [0, 1], batch_dims=1), ([[1.0, 2.0], [3.0, 4.0]],), [[[1.0, 0.0], [0.0, 1.0]]]),
    ],
)
def test_gradient(function: Any, values: Any, wanted: Any) -> None:
    assert gradients(function, *values) == wanted


def test_selu_at_zero_has_the_slope_of_positive_numbers() -> None:
    np.testing.assert_allclose(gradients(tf.nn.selu, [0.0, 1.0, -1.0])[0], [1.0507, 1.0507, 0.6468], rtol=1e-4)


def test_second_derivative_of_a_root() -> None:
    x = tf.constant(4.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.sqrt(x)
        first = inner.gradient(y, x)
    assert (float(first), float(outer.gradient(first, x))) == (0.25, -1 / 32)


def test_seed_of_the_gradient_is_broadcast() -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x, output_gradients=1.5).numpy().tolist() == [3.0, 6.0]
    with pytest.raises(RuntimeError, match="only be used to compute one set"):
        tf.GradientTape().gradient(y, x)
    with tf.GradientTape() as tape, pytest.raises(TypeError):
        tape.gradient(None, x)
    with tf.GradientTape() as tape, pytest.raises(ValueError, match=r"not tf\.Tensor or tf\.Variable"):
        tape.watch(1)
