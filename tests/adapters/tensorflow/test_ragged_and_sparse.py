"""Ragged and sparse tensors in datasets that replicas share, as in TensorFlow 2.21 on two CPUs."""

from __future__ import annotations

from typing import Any

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
    with pytest.raises(ValueError, match="should add up to the 3 values"):
        tf.RaggedTensor.from_row_lengths([1, 2, 3], [1])


def test_sparse_tensors_keep_their_places() -> None:
    dense = [[0, 1], [2, 0], [0, 3]]
    sparse = tf.sparse.from_dense(dense)
    assert sparse.indices.numpy().tolist() == [[0, 1], [1, 0], [2, 1]]
    assert tf.sparse.to_dense(sparse).numpy().tolist() == dense
    assert tf.sparse.to_dense(sparse[1:]).numpy().tolist() == dense[1:]
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
