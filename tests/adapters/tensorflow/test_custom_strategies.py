"""Strategies, replica contexts and reductions that a program defines, as TensorFlow 2.21's base classes allow."""

from __future__ import annotations

from typing import Any

import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored


class Context(tf.distribute.ReplicaContext):
    def merge_call(self, merge_fn: Any, args: Any = (), kwargs: Any = None) -> Any:
        return "merged"


class Extended(tf.distribute.StrategyExtended):
    def _call_for_each_replica(self, fn: Any, args: Any, kwargs: Any) -> Any:
        with Context(self._container_strategy(), replica_id_in_sync_group=0):
            return fn(*args, **kwargs)

    def _create_variable(self, next_creator: Any, **kwargs: Any) -> Any:
        return next_creator(**{**kwargs, "name": f"my_{kwargs['name']}"})

    def _local_results(self, value: Any) -> Any:
        return (value,)


class Strategy(tf.distribute.Strategy):
    def __init__(self) -> None:
        super().__init__(Extended(self))


def test_a_strategy_of_a_program_runs_makes_variables_and_merges() -> None:
    strategy = Strategy()
    with strategy.scope() as entered:
        assert entered is strategy
        assert tf.Variable(1.0, name="a").name == "my_a:0"

    def step() -> tuple[Any, ...]:
        context = tf.distribute.get_replica_context()
        return tf.distribute.get_strategy() is strategy, context.merge_call(print), tf.Variable(2.0, name="b").name

    assert strategy.run(step) == (True, "merged", "my_b:0")
    assert not tf.distribute.has_strategy()


def test_a_scope_refuses_to_be_left_inside_of_a_creators_block() -> None:
    scope = mirrored(2).scope()
    scope.__enter__()
    with (
        tf.variable_creator_scope(lambda make, **kwargs: make(**kwargs)),
        pytest.raises(RuntimeError, match="Variable creator scope nesting error"),
    ):
        scope.__exit__(None, None, None)
    scope.__exit__(None, None, None)
    assert not tf.distribute.has_strategy()


def test_reductions_call_what_a_subclass_defines() -> None:
    class Doubled(tf.distribute.ReductionToOneDevice):
        def reduce_implementation(self, reduce_op: Any, per_replica_value: Any, destinations: Any, options: Any) -> Any:
            return 2 * super().reduce_implementation(reduce_op, per_replica_value, destinations, options)

    values = mirrored(2).run(lambda: tf.identity(1.0) + 1.0)
    sum_ = tf.distribute.ReduceOp.SUM
    assert float(Doubled().reduce(sum_, values, "/cpu:0")) == 8.0
    assert [float(one) for one in Doubled().batch_reduce(sum_, [(values, "/cpu:0")])] == [8.0]


def test_one_device_adds_by_a_given_function() -> None:
    values, lengths = mirrored(2).run(lambda: tf.identity(3.0) + 0.0), []

    def total(parts: list[Any]) -> Any:
        lengths.append(len(parts))
        return tf.add_n(parts)

    reduction = tf.distribute.ReductionToOneDevice(accumulation_fn=total)
    assert float(reduction.reduce(tf.distribute.ReduceOp.MEAN, values, "/cpu:0")) == 3.0
    assert lengths == [2]


def test_older_iterators_run_and_begin_again() -> None:
    strategy = mirrored(2)
    for iterator in (
        strategy.make_dataset_iterator(tf.data.Dataset.range(4).batch(2)),
        strategy.make_input_fn_iterator(lambda _: tf.data.Dataset.range(4).batch(1)),
    ):
        for _ in range(2):
            iterator.initialize()
            seen = [strategy.experimental_run(lambda x: x + 1, iterator) for _ in range(2)]
            assert [[one.numpy().tolist() for one in value.values] for value in seen] == [[[1], [2]], [[3], [4]]]
            with pytest.raises(tf.errors.OutOfRangeError):
                iterator.get_next()


def test_each_replica_may_have_its_own_pipeline() -> None:
    mode = tf.distribute.InputReplicationMode.PER_REPLICA
    options = tf.distribute.InputOptions(experimental_fetch_to_device=False, experimental_replication_mode=mode)
    strategy, made = mirrored(2), []

    def pipeline(context: tf.distribute.InputContext) -> Any:
        made.append((context.num_input_pipelines, context.input_pipeline_id))
        return tf.data.Dataset.range(10 * context.input_pipeline_id, 10 * context.input_pipeline_id + 3).batch(2)

    distributed = strategy.distribute_datasets_from_function(pipeline, options)
    found = [[one.numpy().tolist() for one in value.values] for value in distributed]
    assert (made, found) == ([(2, 0), (2, 1)], [[[0, 1], [10, 11]], [[2], [12]]])
    with pytest.raises(NotImplementedError, match="only supported in `distribute_datasets_from_function`"):
        strategy.experimental_distribute_dataset(tf.data.Dataset.range(4), options)
    with pytest.raises(NotImplementedError, match=r"tf\.distribute\.MirroredStrategy"):
        tf.distribute.OneDeviceStrategy("cpu:0").distribute_datasets_from_function(pipeline, options)
    placed = tf.distribute.InputOptions(experimental_place_dataset_on_device=True)
    with pytest.raises(ValueError, match="you must also specify `PER_REPLICA`"):
        strategy.distribute_datasets_from_function(pipeline, placed)
