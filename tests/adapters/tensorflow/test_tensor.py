"""Tensors print and compute as in TensorFlow 2.21, the source of the values here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import collshim.tensorflow as tf

X = tf.constant([[1, 2], [3, 4]])

TEXTS: list[tuple[Any, str]] = [
    (lambda: repr(X), "<tf.Tensor: shape=(2, 2), dtype=int32, numpy=\narray([[1, 2],\n       [3, 4]], dtype=int32)>"),
    (lambda: str(X), "tf.Tensor(\n[[1 2]\n [3 4]], shape=(2, 2), dtype=int32)"),
    (lambda: repr(tf.constant(1.0)), "<tf.Tensor: shape=(), dtype=float32, numpy=1.0>"),
    (lambda: str(tf.constant(5.0)), "tf.Tensor(5.0, shape=(), dtype=float32)"),
    (lambda: repr(X.shape), "TensorShape([2, 2])"),
    (lambda: str(X.shape), "(2, 2)"),
    (lambda: f"{tf.constant(1.5):.2f}", "1.50"),
    (lambda: f"{tf.constant([1.0, 2.0])} {tf.constant(3)}", "[1. 2.] 3"),
]

VALUES: list[tuple[Callable[[], Any], Any, str]] = [
    (lambda: X / 2, [[0.5, 1.0], [1.5, 2.0]], "float64"),
    (lambda: 1 / tf.constant(4), 0.25, "float64"),
    (lambda: tf.constant(1.0) / 4, 0.25, "float32"),
    (lambda: tf.constant(-7) // 2, -4, "int32"),
    (lambda: tf.range(3), [0, 1, 2], "int32"),
    (lambda: tf.range(1, 4, 0.5), [1.0, 1.5, 2.0, 2.5, 3.0, 3.5], "float32"),
    (lambda: tf.one_hot([0, 1], 2), [[1.0, 0.0], [0.0, 1.0]], "float32"),
    (lambda: tf.ones([2]), [1.0, 1.0], "float32"),
    (lambda: tf.ones((), tf.int32), 1, "int32"),
    (lambda: tf.ones([1], tf.bool), [True], "bool"),
    (lambda: tf.zeros_like(X), [[0, 0], [0, 0]], "int32"),
    (lambda: tf.cast(1.7, tf.int32), 1, "int32"),
    (lambda: tf.linalg.diag([1.0, 2.0]), [[1.0, 0.0], [0.0, 2.0]], "float32"),
    (lambda: tf.linalg.diag_part([X, X + 4]), [[1, 4], [5, 8]], "int32"),
    (lambda: tf.linalg.diag_part(X, k=1), [2], "int32"),
    (lambda: tf.linalg.set_diag([X, X], [[7, 8], [5, 6]]), [[[7, 2], [3, 8]], [[5, 2], [3, 6]]], "int32"),
    (lambda: tf.linalg.set_diag(X > 2, [True, False]), [[True, False], [True, False]], "bool"),
    (lambda: tf.tensor_scatter_nd_update(X, [[0], [1]], [[7, 8], [9, 9]]), [[7, 8], [9, 9]], "int32"),
    (lambda: tf.gather_nd(X, [[0, 1], [1, 0]]), [2, 3], "int32"),
    (lambda: tf.gather_nd(X, [[1], [1]]), [[3, 4], [3, 4]], "int32"),
    (lambda: tf.tensor_scatter_nd_update(X, [[0, 1]], [7]), [[1, 7], [3, 4]], "int32"),
    (lambda: tf.ones(tf.constant(2)), [1.0, 1.0], "float32"),
    (lambda: tf.math.reduce_variance([1.0, 2.0]), 0.25, "float32"),
    (lambda: tf.math.reduce_std([[1.0, 2.0], [4.0, 6.0]], axis=0, keepdims=True), [[1.5, 2.0]], "float32"),
    (lambda: tf.concat([X, X], -1), [[1, 2, 1, 2], [3, 4, 3, 4]], "int32"),
    (lambda: tf.concat([X], 5), [[1, 2], [3, 4]], "int32"),
    (lambda: tf.stack([1, 2]), [1, 2], "int32"),
    (lambda: tf.split(X, [1, -1], 1)[1], [[2], [4]], "int32"),
    (lambda: tf.unstack(X)[1], [3, 4], "int32"),
    (lambda: tf.scatter_nd([[0], [2]], [1.0, 2.0], [3]), [1.0, 0.0, 2.0], "float32"),
    (lambda: tf.math.l2_normalize([3.0, 4.0]), [0.6, 0.8], "float32"),
    (lambda: tf.nn.softmax_cross_entropy_with_logits([[0.0, 1.0]], [[1.0, 2.0]]), [0.31326166], "float32"),
    (lambda: tf.nn.sparse_softmax_cross_entropy_with_logits([1], [[1.0, 2.0]]), [0.31326166], "float32"),
    (lambda: tf.matmul([[1.0, 2.0]], [[1.0, 2.0]], transpose_b=True), [[5.0]], "float32"),
    (lambda: tf.reshape(X, [-1]), [1, 2, 3, 4], "int32"),
    (lambda: tf.transpose(X), [[1, 3], [2, 4]], "int32"),
    (lambda: tf.convert_to_tensor(1, tf.float32), 1.0, "float32"),
    (lambda: tf.reduce_max(X, 1), [2, 4], "int32"),
    (lambda: tf.reduce_sum(X), 10, "int32"),
    (lambda: tf.reduce_mean(X, axis=[0, 1], keepdims=True), [[2]], "int32"),
    (lambda: tf.reduce_any([True, False]), True, "bool"),
    (lambda: tf.argmax(X, 1), [1, 1], "int64"),
    (lambda: tf.shape(X), [2, 2], "int32"),
    (lambda: tf.size(X), 4, "int32"),
    (lambda: tf.gather(X, [1]), [[3, 4]], "int32"),
    (lambda: tf.fill([2], 3.0), [3.0, 3.0], "float32"),
    (lambda: tf.tile(X, [1, 2]), [[1, 2, 1, 2], [3, 4, 3, 4]], "int32"),
    (lambda: tf.pow(2.0, 3.0), 8.0, "float32"),
    (lambda: tf.square(3), 9, "int32"),
    (lambda: tf.add_n([X, X]), [[2, 4], [6, 8]], "int32"),
    (lambda: tf.where(X > 1, X, 0), [[0, 2], [3, 4]], "int32"),
    (lambda: tf.where(X > 1), [[0, 1], [1, 0], [1, 1]], "int64"),
    (lambda: tf.linalg.norm([3.0, 4.0]), 5.0, "float32"),
    (lambda: tf.cond(True, lambda: tf.constant(1), lambda: tf.constant(2)), 1, "int32"),
    (lambda: tf.while_loop(lambda i: i < 3, lambda i: [i + 1], [tf.constant(0)])[0], 3, "int32"),
    (lambda: tf.clip_by_value([1.0, 5.0], 2.0, 3), [2.0, 3.0], "float32"),
]


@pytest.mark.parametrize(("text", "wanted"), TEXTS)
def test_tensor_repr_matches_tensorflow(text: Callable[[], str], wanted: str) -> None:
    assert text() == wanted


@pytest.mark.parametrize(("compute", "wanted", "dtype"), VALUES)
def test_functions_return_tensorflow_values(compute: Callable[[], Any], wanted: Any, dtype: str) -> None:
    found = compute()
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-6)
    assert (type(found), found.dtype, found.shape) == (tf.Tensor, getattr(torch, dtype), np.shape(wanted))


def test_numpy_copies_tensors_that_require_grad() -> None:
    x = tf.constant([1.0, 2.0]).requires_grad_()
    x.numpy()[0] = 5.0
    assert x.numpy().tolist() == [1.0, 2.0]


def test_shape_is_a_list_of_lengths() -> None:
    assert (X.shape.as_list(), X.shape[0], X.shape.rank, X.shape.num_elements()) == ([2, 2], 2, 2, 4)


def test_shape_equals_lists_and_tuples() -> None:
    assert X.shape == [2, 2]
    assert X.shape == (2, 2)
    assert X.shape != [2]


@pytest.mark.parametrize(
    ("compute", "said"),
    [
        (lambda: tf.add(X, tf.constant(1.0)), "expected to be a int32 tensor but is a float32 tensor"),
        (lambda: tf.split(X, 3), "Number of ways to split should evenly divide the split dimension"),
        (lambda: tf.concat([1, 2], 0), "Can't concatenate scalars"),
        (lambda: tf.concat([X, X], 2), r"in the range \[-2, 2\), but got 2"),
        (lambda: tf.concat([X, [1]], 0), "Dimensions of inputs should match"),
        (lambda: tf.concat([X, tf.constant([[1.0, 2.0]])], 0), "have dtypes"),
        (lambda: tf.reshape(X, [3]), "a tensor with 4 values"),
        (lambda: tf.reduce_sum(X, 2), "Invalid reduction dimension"),
    ],
)
def test_mismatch_is_an_invalid_argument(compute: Callable[[], Any], said: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=said):
        compute()


def test_convert_to_tensor_refuses_another_dtype() -> None:
    with pytest.raises(ValueError, match="conversion requested dtype float32 for Tensor with dtype int32"):
        tf.convert_to_tensor(X, tf.float32)


def test_gradients_flow_through_lists_of_tensors() -> None:
    x = tf.constant(2.0).requires_grad_()
    (gradient,) = torch.autograd.grad(tf.reduce_sum(tf.stack([x, tf.square(x)])), x)
    assert float(gradient) == 5.0


def test_collectives_return_tensors() -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    found = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(1.0)))
    assert [repr(part) for part in found.values] == ["<tf.Tensor: shape=(), dtype=float32, numpy=2.0>"] * 2


def test_seeds_reproduce_numbers() -> None:
    assert bool(tf.reduce_all(tf.random.normal([3], seed=1) == tf.random.normal([3], seed=1)))
    assert tf.random.uniform([3], 0, 5, tf.int32).shape == [3]


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: tf.gather([1.0, 2.0], [0, 2]), r"indices\[1\] = \[2\] does not index into shape \[2\]"),
        (lambda: tf.gather_nd(X, [[0, -1]]), r"indices\[0\] = \[0, -1\] does not index into shape \[2, 2\]"),
        (lambda: tf.gather_nd(X, [[0, 1, 1]]), "indices have 3 places each, should have at most 2"),
        (lambda: tf.scatter_nd([[-1]], [1.0], [3]), r"indices\[0\] = \[-1\] does not index into shape \[3\]"),
        (lambda: tf.tensor_scatter_nd_update(X, [[0], [1]], [7, 8]), r"updates have shape \[2\], should have \[2, 2\]"),
    ],
)
def test_invalid_indices_and_updates_are_refused(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=told):
        call()
