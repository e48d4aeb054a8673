"""The dtypes of operands, the axes and shapes of functions, and their errors: TensorFlow 2.21 gave the values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.tensorflow as tf

X: Any = tf.constant([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
WIDE = np.array([1.0, 2.0])  # float64
InvalidArgument = tf.errors.InvalidArgumentError

SAME: list[tuple[Callable[[], Any], Any, Any]] = [
    (lambda: tf.add(tf.constant([1.0, 2.0]), WIDE), tf.float32, [2.0, 4.0]),
    (lambda: tf.multiply(np.float64(2), tf.constant([3.0])), tf.float32, [6.0]),
    (lambda: tf.maximum(1.0, 2), tf.float32, 2.0),
    (lambda: tf.less(tf.constant([1, 2]), np.int64(2)), tf.bool, [True, False]),
    (lambda: tf.concat([tf.constant([1.0]), [2]], 0), tf.float32, [1.0, 2.0]),
    (lambda: tf.concat([WIDE, tf.constant([3.0])], [0]), tf.float32, [1.0, 2.0, 3.0]),
    (lambda: tf.stack([1, 2.5]), tf.float32, [1.0, 2.5]),
    (lambda: tf.stack([1.0, 2, tf.constant(3.0)]), tf.float32, [1.0, 2.0, 3.0]),
    (lambda: tf.where(tf.constant([True, False]), tf.constant([1.0, 2.0]), WIDE), tf.float32, [1.0, 2.0]),
    (lambda: tf.where(np.array([1.0, 0.0]), 1.0, 0.5), tf.float32, [1.0, 0.5]),
    (lambda: tf.convert_to_tensor([tf.constant(1), 2], tf.float32), tf.float32, [1.0, 2.0]),
    (lambda: tf.constant([1]) - True, tf.int32, [0]),
    (lambda: tf.reduce_prod([2, 3]), tf.int32, 6),
    (lambda: tf.reduce_max(tf.constant([], tf.float16)), tf.float16, -np.inf),
    (lambda: tf.reduce_min(tf.zeros([2, 0], tf.int32), 1), tf.int32, [2147483647] * 2),
    (lambda: tf.math.divide_no_nan(1, 2), tf.float64, 0.5),
    (lambda: tf.linspace(0, 1, 3), tf.float64, [0.0, 0.5, 1.0]),
    (lambda: tf.linspace([0.0, 1.0], [1.0, 3.0], 2, axis=-1), tf.float32, [[0.0, 1.0], [1.0, 3.0]]),
    (lambda: tf.one_hot([1], 2, on_value=5), tf.int32, [[0, 5]]),
    (lambda: tf.one_hot([1], 2, True, False), tf.bool, [[False, True]]),
    (lambda: tf.one_hot([0], 2, 5.0, 1, dtype=tf.float32), tf.float32, [[5.0, 1.0]]),
    (lambda: tf.argmax([True, False]), tf.int64, 0),
    (lambda: tf.argmax([1.0, float("nan"), 3.0]), tf.int64, 2),
    (lambda: tf.sign([float("nan"), -2.0])[1:], tf.float32, [-1.0]),
    (lambda: tf.clip_by_value([1.0, 2.0], 5.0, 1.0), tf.float32, [5.0, 5.0]),
    (lambda: tf.eye(2, 1, [2]), tf.float32, [[[1.0], [0.0]]] * 2),
    (lambda: tf.norm([[1.0, 2.0], [3.0, 4.0]], 1, axis=[0, 1]), tf.float32, 6.0),
    (lambda: tf.norm([[1.0, 2.0], [3.0, 4.0]], np.inf, axis=(0, 1), keepdims=True), tf.float32, [[7.0]]),
    (lambda: tf.norm(tf.constant([3, 4]), ord=1), tf.int32, 7),
    (lambda: tf.nn.softmax([[[0.0]], [[1.0]]], axis=None), tf.float32, [[[1.0]], [[1.0]]]),
    (lambda: tf.matmul(X, X, adjoint_b=True), tf.float32, [[14.0, -24.0], [-24.0, 77.0]]),
    (lambda: tf.gather(X, [0, 2], batch_dims=0, axis=1), tf.float32, [[1.0, 3.0], [4.0, -6.0]]),
    (lambda: tf.gather(X, [[0], [2]], batch_dims=1), tf.float32, [[1.0], [-6.0]]),
    (lambda: tf.gather(X, [0, 1], batch_dims=1), tf.float32, [1.0, 5.0]),
    (lambda: tf.gather_nd(X, [[0], [1]], batch_dims=1), tf.float32, [1.0, 5.0]),
    (lambda: tf.split([[1.0, 2.0]], np.int64(2), 1)[1], tf.float32, [[2.0]]),
    (lambda: tf.squeeze([[[1.0]]], []), tf.float32, 1.0),
    (lambda: tf.expand_dims(1.0, np.array([0])), tf.float32, [1.0]),
    (lambda: tf.repeat(3, 2, axis=0), tf.int32, [3, 3]),
    (lambda: tf.math.l2_normalize([3.0, 4.0], dim=tf.constant([0])), tf.float32, [0.6, 0.8]),
    (lambda: tf.linalg.diag([1.0, 2.0], num_rows=3, padding_value=9.0), tf.float32, [[1, 9], [9, 2], [9, 9]]),
    (lambda: tf.sequence_mask([1, 2], dtype=None), tf.bool, [[True, False], [True, True]]),
    (lambda: tf.constant(tf.Variable([1.5]), tf.float64), tf.float64, [1.5]),
    (lambda: tf.random.normal([2], [1.0, 2.0], 0.0), tf.float32, [1.0, 2.0]),
    (lambda: tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [0])[0], tf.int32, 3),
]


@pytest.mark.parametrize(("call", "dtype", "values"), SAME)
def test_result(call: Callable[[], Any], dtype: Any, values: Any) -> None:
    found = call()
    assert isinstance(found, tf.Tensor)
    assert found.dtype is dtype
    np.testing.assert_allclose(found.numpy(), values, rtol=1e-6)


REFUSED: list[tuple[Callable[[], Any], type[Exception]]] = [
    (lambda: tf.constant([1.0, 2.0]) + tf.constant([1.0, 2.0, 3.0]), InvalidArgument),
    (lambda: tf.constant([1]) // 0, InvalidArgument),
    (lambda: tf.matmul(tf.constant([1.0]), tf.constant([1.0])), InvalidArgument),
    (lambda: tf.matmul(X, X, transpose_a=True, adjoint_a=True), ValueError),
    (lambda: tf.reduce_sum([True]), InvalidArgument),
    (lambda: tf.reduce_all(tf.constant([1.0])), InvalidArgument),
    (lambda: tf.reduce_all([0.5]), TypeError),
    (lambda: tf.logical_and(tf.constant([1]), tf.constant([1])), InvalidArgument),
    (lambda: tf.logical_not(2), TypeError),
    (lambda: tf.where(tf.constant([1, 0]), [1, 2], [3, 4]), ValueError),
    (lambda: tf.reduce_mean(X, [0, 0]), InvalidArgument),
    (lambda: tf.nn.softmax(X, 2), InvalidArgument),
    (lambda: tf.argmax(X, 2), InvalidArgument),
    (lambda: tf.argmax(0.5), InvalidArgument),
    (lambda: tf.squeeze(X, 0), InvalidArgument),
    (lambda: tf.tile(X, [2]), InvalidArgument),
    (lambda: tf.unstack(X, axis=2), ValueError),
    (lambda: tf.stack([X], 3), ValueError),
    (lambda: tf.sort(X, None), ValueError),
    (lambda: tf.sort(1.0), InvalidArgument),
    (lambda: tf.gather(X, [0.0]), InvalidArgument),
    (lambda: tf.concat([tf.constant([1]), [2.5]], 0), TypeError),
    (lambda: tf.divide(tf.constant([True]), True), TypeError),
    (lambda: tf.norm(X, -1), ValueError),
    (lambda: tf.norm(X, 3, axis=[0, 1]), ValueError),
    (lambda: tf.cast(1, None), TypeError),
    (lambda: tf.constant(tf.constant([3]), tf.float32), TypeError),
    (lambda: tf.clip_by_global_norm(X, 1.0), TypeError),
    (lambda: tf.random.uniform([2], dtype=tf.int32), ValueError),
    (lambda: tf.data.Dataset.zip(), TypeError),
]


@pytest.mark.parametrize(("call", "error"), REFUSED)
def test_refusal(call: Callable[[], Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_comparison_of_shapes_that_do_not_fit_is_one_boolean() -> None:
    x, y = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0, 3.0])
    assert [(x == y).numpy(), (x != y).numpy(), (x == [1.0, 2.0, 3.0]).numpy()] == [False, True, False]
    with pytest.raises(InvalidArgument):
        tf.equal(x, y)


def test_augmented_assignment_leaves_the_tensor() -> None:
    x = y = tf.constant([1, 2])
    y += 1
    assert (x.numpy().tolist(), y.numpy().tolist()) == ([1, 2], [2, 3])
    y /= 2
    assert (y.dtype, y.numpy().tolist()) == (tf.float64, [1.0, 1.5])
    z = tf.constant(1.0)
    z *= tf.constant([2.0, 3.0])
    assert z.numpy().tolist() == [2.0, 3.0]


def test_numpy_functions_return_arrays() -> None:
    found = [np.sqrt(X * X), np.isnan(X), np.mean(X), np.add(tf.constant(1.0), 1), np.concatenate([X, X])]
    assert [type(one) for one in found] == [np.ndarray, np.ndarray, np.float32, np.float32, np.ndarray]
    assert [str(one.dtype) for one in found] == ["float32", "bool", "float32", "float32", "float32"]


@pytest.mark.parametrize(
    ("select", "wanted"),
    [
        (lambda x: x[::-1], [[4, 5, -6], [1, -2, 3]]),
        (lambda x: x[::-1, ::-1], [[-6, 5, 4], [3, -2, 1]]),
        (lambda x: x[..., ::-2], [[3, 1], [-6, 4]]),
        (lambda x: x[0, ::-1], [3, -2, 1]),
        (lambda x: x[:, 2:0:-1], [[3, -2], [-6, 5]]),
        (lambda x: x[tf.newaxis, ::-1], [[[4, 5, -6], [1, -2, 3]]]),
        (lambda x: x[x > 3], [4, 5]),
        (lambda x: x[tf.constant(1) :], [[4, 5, -6]]),
    ],
)
@pytest.mark.parametrize("make", [tf.identity, tf.Variable])
def test_index(make: Any, select: Callable[[Any], Any], wanted: list[Any]) -> None:
    assert select(make(X)).numpy().tolist() == wanted


@pytest.mark.parametrize(
    ("index", "error"), [(5, InvalidArgument), ((0, 0, 0), InvalidArgument), ("a", TypeError), (0.5, TypeError)]
)
def test_index_is_refused(index: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        X[index]


def test_empty_tensor_is_false() -> None:
    assert not tf.constant([])
    assert tf.constant([0.5])
