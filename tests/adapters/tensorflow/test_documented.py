"""The examples of the reference manual of ``ReplicaContext.all_gather``, with two replicas named as GPUs."""

from __future__ import annotations

from typing import Any

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


def test_local_results_of_a_list_are_a_tuple_of_lists() -> None:
    strategy = strategy_of_two()
    results = strategy.experimental_local_results(strategy.run(gather_nest))
    assert [[leaf.tolist() for leaf in result] for result in results] == [[[1, 2, 3, 1, 2, 3], STACKED]] * 2
    assert isinstance(results, tuple)
    assert all(isinstance(result, list) for result in results)
