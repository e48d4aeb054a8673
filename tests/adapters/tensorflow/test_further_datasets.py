"""Datasets that are resampled, saved, made ragged, or pass over errors; expected results are from TensorFlow 2.21."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored

Dataset = tf.data.Dataset


def numbers(dataset: Any) -> list[Any]:
    return [one.tolist() for one in dataset]


def test_elements_that_raise_errors_are_left_out() -> None:
    inverse = Dataset.from_tensor_slices([1.0, 0.0, 2.0]).map(lambda x: tf.debugging.check_numerics(1 / x, "inverse"))
    positive = inverse.filter(lambda x: x > 0)
    for dataset in (inverse, positive):
        assert numbers(dataset.ignore_errors()) == [1.0, 0.5]
        assert numbers(dataset.apply(tf.data.experimental.ignore_errors())) == [1.0, 0.5]


def test_ragged_batches_have_rows_of_different_lengths() -> None:
    rows = Dataset.range(4).map(tf.range)
    for dataset in (rows.ragged_batch(3), rows.apply(tf.data.experimental.dense_to_ragged_batch(3))):
        first, last = dataset
        assert first.to_list() == [[], [0], [0, 1]]
        assert last.shape[0] == 1
        assert int(dataset.cardinality()) == 2
    assert numbers(Dataset.range(3).ragged_batch(2, drop_remainder=True)) == [[0, 1]]


def test_replicas_share_ragged_batches() -> None:
    strategy = mirrored(2)
    dataset = Dataset.range(4).map(tf.range).ragged_batch(4)
    (both,) = strategy.experimental_distribute_dataset(dataset)
    assert [rows.to_list() for rows in both.values] == [[[], [0]], [[0, 1], [0, 1, 2]]]


def test_resampled_elements_have_the_wanted_frequencies() -> None:
    classes = Dataset.from_tensor_slices([0, 0, 0, 1]).repeat(500)
    for initial in (None, [0.75, 0.25]):
        pairs = list(classes.rejection_resample(lambda x: x, [0.5, 0.5], initial, seed=3))
        assert all(int(kind) == int(element) for kind, element in pairs)
        assert abs(sum(int(kind) for kind, _ in pairs) / len(pairs) - 0.5) < 0.05


def test_a_saved_dataset_is_loaded_with_its_description(tmp_path: Path) -> None:
    whole = Dataset.from_tensor_slices({"x": [[1, 2], [3, 4]], "y": ([1.0, 2.0], [True, False])})
    whole.save(str(tmp_path / "dataset"))
    found = Dataset.load(str(tmp_path / "dataset"))
    assert (found.element_spec, len(found)) == (whole.element_spec, 2)
    assert list(found.as_numpy_iterator())[1]["x"].tolist() == [3, 4]
    reverse = Dataset.load(
        str(tmp_path / "dataset"), reader_func=lambda shards: shards.flat_map(lambda shard: shard.skip(1))
    )
    assert [int(one["x"][0]) for one in reverse] == [3]
    with pytest.raises(tf.errors.NotFoundError):
        Dataset.load(str(tmp_path / "nothing"))


def test_random_numbers_repeat_with_a_seed() -> None:
    assert numbers(Dataset.random(seed=1).take(3)) == numbers(Dataset.random(seed=1).take(3))
    endless = Dataset.random(seed=1, rerandomize_each_iteration=True).take(3)
    assert numbers(endless) != numbers(endless)
    assert endless.element_spec == tf.TensorSpec([], tf.int64)


def test_a_list_inside_a_functions_result_is_a_tensor() -> None:
    dataset = Dataset.range(1).map(lambda x: (x, [1, 2]))
    ((number, rest),) = dataset
    assert (int(number), rest.tolist()) == (0, [1, 2])
    assert [type(one) for one in Dataset.range(1).map(lambda x: [x, x])] == [tuple]


def distributed(dataset: Any, replicas: int) -> list[Any]:
    strategy = tf.distribute.MirroredStrategy([f"CPU:{place}" for place in range(replicas)])
    found = strategy.experimental_distribute_dataset(dataset)
    return [[part.numpy().tolist() for part in element.values] for element in found]


@pytest.mark.parametrize("policy", ["OFF", "FILE", "HINT"])
def test_without_sharding_of_rows_replicas_have_parts_of_fixed_sizes(policy: str) -> None:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[policy]
    numbers = tf.data.Dataset.range(7).batch(4)
    assert distributed(numbers.with_options(options), 3) == [[[0, 1], [2], [3]], [[4, 5], [6], []]]
    assert distributed(numbers, 3) == [[[0, 1], [2, 3], []], [[4], [5], [6]]]


def test_elements_may_contain_none() -> None:
    pairs = tf.data.Dataset.range(4).batch(2).map(lambda x: (x, None))
    assert [(x.numpy().tolist(), nothing) for x, nothing in pairs] == [([0, 1], None), ([2, 3], None)]
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    _, nothing = next(iter(strategy.experimental_distribute_dataset(pairs)))
    assert nothing.values == (None, None)
    slices = tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": None}).batch(2)
    assert [(one["a"].numpy().tolist(), one["b"]) for one in slices] == [([1, 2], None)]
