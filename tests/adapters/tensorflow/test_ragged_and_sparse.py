"""Ragged and sparse tensors in datasets that replicas share, as in TensorFlow 2.21 on two CPUs."""

from __future__ import annotations

from typing import Any, cast

import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored


def ragged_rows() -> Any:
    return tf.ragged.constant([[1, 2], [3], [], [4, 5, 6], [7]])


def test_rows_of_different_lengths() -> None:
    rows = ragged_rows()
    assert (rows.shape.as_list(), rows.row_splits.numpy().tolist()) == ([5, None], [0, 2, 3, 3, 6, 7])
    assert (rows[1:3].to_list(), rows[0].numpy().tolist(), int(rows.nrows())) == ([[3], []], [1, 2], 5)
    assert rows[:2].to_tensor(-1).numpy().tolist() == [[1, 2], [3, -1]]
    assert (rows.row_lengths().numpy().tolist(), int(tf.reduce_sum(rows))) == ([2, 1, 0, 3, 1], 28)
    assert tf.is_tensor(rows)
    assert repr(tf.RaggedTensor.from_row_splits([1, 2, 3], [0, 2, 3])) == "<tf.RaggedTensor [[1, 2], [3]]>"


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: tf.RaggedTensor.from_row_lengths([1, 2], [1]), tf.errors.InvalidArgumentError, "to the 2 values"),
        (lambda: tf.RaggedTensor.from_row_lengths([1], [2, -1]), tf.errors.InvalidArgumentError, "0 or more"),
        (lambda: tf.RaggedTensor.from_row_lengths([1], [1.0]), ValueError, "must have dtype int32 or int64"),
        (lambda: tf.RaggedTensor.from_row_splits([1], []), ValueError, "may not be empty"),
        (lambda: tf.RaggedTensor.from_row_splits([1, 2], [1, 3]), tf.errors.InvalidArgumentError, "begin with 0"),
        (lambda: tf.ragged.constant([[1], 2]), ValueError, "same nesting depth"),
        (lambda: tf.RaggedTensorSpec(), ValueError, "Must specify ragged_rank"),
        (lambda: tf.RaggedTensorSpec([2, None], ragged_rank=3), ValueError, r"`ragged_rank` \(3\) must be less"),
        (lambda: tf.SparseTensor([0], [1], [2]), ValueError, "must have rank 2"),
        (lambda: tf.SparseTensor([[0, 1]], [1, 2], [2, 2]), ValueError, "are not compatible"),
        (lambda: tf.sparse.to_dense(cast(Any, 3)), TypeError, "must be a SparseTensor"),
        (lambda: dense([[0, 5]]), tf.errors.InvalidArgumentError, r"\[0, 5\] is out of bounds"),
        (lambda: dense([[0, 1], [0, 0]]), tf.errors.InvalidArgumentError, "out of order"),
    ],
)
def test_parts_that_do_not_fit_are_refused(make: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


def dense(places: Any) -> Any:
    return tf.sparse.to_dense(tf.SparseTensor(places, [1] * len(places), [2, 2]))


def test_sparse_tensors_keep_their_places() -> None:
    dense = [[0, 1], [2, 0], [0, 3]]
    sparse = tf.sparse.from_dense(dense)
    assert sparse.indices.numpy().tolist() == [[0, 1], [1, 0], [2, 1]]
    assert tf.sparse.to_dense(sparse).numpy().tolist() == dense
    assert tf.sparse.to_dense(sparse[1:]).numpy().tolist() == dense[1:]
    assert (sparse.get_shape(), tf.SparseTensorSpec().shape.rank) == ((3, 2), None)
    assert repr(sparse[:1]).startswith("SparseTensor(indices=tf.Tensor([[0 1]], shape=(1, 2), dtype=int64), values=tf.")
    assert tf.sparse.to_dense(ragged_rows().to_sparse()).shape == (5, 3)


@pytest.mark.parametrize("kind", ["ragged", "sparse"])
def test_replicas_share_their_batches(kind: str) -> None:
    rows, strategy = ragged_rows(), mirrored(2)
    dataset = tf.data.Dataset.from_tensor_slices({kind: rows if kind == "ragged" else rows.to_sparse()}).batch(4)
    total = 0
    for batch in strategy.experimental_distribute_dataset(dataset):
        sums = strategy.run(lambda part: tf.reduce_sum(part.values), (batch[kind],))
        total += int(strategy.reduce("SUM", sums, axis=None))
    assert total == 28
    name = "RaggedTensorSpec" if kind == "ragged" else "SparseTensorSpec"
    assert repr(dataset.element_spec[kind]).startswith(f"{name}(TensorShape([None, ")


def test_unequal_elements_of_known_shapes_are_left_out() -> None:
    strategy = mirrored(2)

    def iterator(drop: bool) -> Any:
        return iter(
            strategy.distribute_datasets_from_function(lambda _: tf.data.Dataset.range(3).batch(1, drop_remainder=drop))
        )

    assert (len(list(iterator(True))), len(list(iterator(False)))) == (1, 2)
    known = iterator(True)
    next(known)
    assert [one.numpy().tolist() for one in known.get_next_as_optional().get_value().values] == [[2], []]
