"""The examples of the reference manual of ``ReplicaContext.all_gather``, with two replicas named as GPUs."""

from __future__ import annotations

from typing import Any

import torch

import collshim.tensorflow as tf

STACKED = [[1, 2], [3, 4], [1, 2], [3, 4]]


def strategy_of_two() -> tf.distribute.MirroredStrategy:
    return tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"])


@tf.function
def gather_value() -> Any:
    ctx = tf.distribute.get_replica_context()
    local_value = tf.constant([1, 2, 3])
    return ctx.all_gather(local_value, axis=0)


@tf.function
def gather_nest() -> Any:
    ctx = tf.distribute.get_replica_context()
    value_1 = tf.constant([1, 2, 3])
    value_2 = tf.constant([[1, 2], [3, 4]])
    return ctx.all_gather([value_1, value_2], axis=0)


def test_a_tensor_is_gathered_into_a_per_replica_value() -> None:
    result = strategy_of_two().run(gather_value)
    assert repr(result) == (
        "PerReplica:{\n"
        "  0: <tf.Tensor: shape=(6,), dtype=int32, numpy=array([1, 2, 3, 1, 2, 3], dtype=int32)>,\n"
        "  1: <tf.Tensor: shape=(6,), dtype=int32, numpy=array([1, 2, 3, 1, 2, 3], dtype=int32)>\n"
        "}"
    )


def test_local_results_are_a_tuple_with_one_tensor_per_replica() -> None:
    strategy = strategy_of_two()
    results = strategy.experimental_local_results(strategy.run(gather_value))
    assert isinstance(results, tuple)
    assert [result.tolist() for result in results] == [[1, 2, 3, 1, 2, 3]] * 2


def test_a_list_is_gathered_into_a_list_of_per_replica_values() -> None:
    result = strategy_of_two().run(gather_nest)
    assert isinstance(result, list)
    assert [type(leaf).__name__ for leaf in result] == ["PerReplica", "PerReplica"]
    assert [[value.tolist() for value in leaf.values] for leaf in result] == [[[1, 2, 3, 1, 2, 3]] * 2, [STACKED] * 2]


def test_local_results_of_a_list_are_a_tuple_of_lists() -> None:
    strategy = strategy_of_two()
    results = strategy.experimental_local_results(strategy.run(gather_nest))
    assert [[leaf.tolist() for leaf in result] for result in results] == [[[1, 2, 3, 1, 2, 3], STACKED]] * 2
    assert isinstance(results, tuple)
    assert all(isinstance(result, list) for result in results)


def test_a_dict_with_unequal_lengths_is_gathered_key_by_key() -> None:
    """The manual prints ``'a': [1, 2]`` for inputs ``[0]`` and ``[1]``; TensorFlow itself gives ``[0, 1]``."""
    values = [{"a": [0], "b": [[0, 1]]}, {"a": [1], "b": [[2, 3], [4, 5]]}]

    def gather() -> Any:
        ctx = tf.distribute.get_replica_context()
        mine = values[int(ctx.replica_id_in_sync_group)]
        return ctx.all_gather({key: tf.constant(value) for key, value in mine.items()}, axis=0)

    strategy = strategy_of_two()
    for result in strategy.experimental_local_results(strategy.run(gather)):
        assert {key: value.tolist() for key, value in result.items()} == {"a": [0, 1], "b": [[0, 1], [2, 3], [4, 5]]}
        assert result["a"].dtype is torch.int32
