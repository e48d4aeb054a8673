"""Variables, across replicas and in them, match TensorFlow 2.21 on two CPUs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored, replica

ON_READ = tf.VariableSynchronization.ON_READ
Aggregation = tf.VariableAggregation


def variable(strategy: Any, value: Any = 1.0, **more: Any) -> Any:
    with strategy.scope():
        return tf.Variable(value, **more)


def copies(found: Any) -> list[float]:
    return [float(copy) for copy in found.values]


def number() -> tf.Tensor:
    return tf.constant(float(replica() + 1))


def test_variable_repr_of_two_replicas_matches_tensorflow() -> None:
    assert repr(variable(mirrored(2))) == (
        "MirroredVariable:{\n  0: <tf.Variable 'Variable:0' shape=() dtype=float32, numpy=1.0>,\n"
        "  1: <tf.Variable 'Variable/replica_1:0' shape=() dtype=float32, numpy=1.0>\n}"
    )


def test_variable_outside_strategies() -> None:
    x = tf.Variable([1.0, 2.0], name="foo")
    assert repr(x) == ("<tf.Variable 'foo:0' shape=(2,) dtype=float32, numpy=array([1., 2.], dtype=float32)>")
    assert x.assign_add([1.0, 1.0]) is x
    assert (x.numpy().tolist(), (x * 2).numpy().tolist(), float(x[0])) == ([2.0, 3.0], [4.0, 6.0], 2.0)


@pytest.mark.parametrize(
    ("aggregation", "written"),
    [("NONE", [2.0, 3.0]), ("SUM", [4.0, 4.0]), ("MEAN", [2.5, 2.5]), ("ONLY_FIRST_REPLICA", [2.0, 2.0])],
)
def test_replicas_add_to_a_variable(aggregation: str, written: list[float]) -> None:
    strategy = mirrored(2)
    x = variable(strategy, aggregation=getattr(Aggregation, aggregation))
    found = strategy.run(lambda: x.assign_add(number()))
    assert (copies(x), copies(found)) == (written, written)


@pytest.mark.parametrize(("aggregation", "seen"), [("SUM", 5.0), ("MEAN", 2.5), ("ONLY_FIRST_REPLICA", 2.0)])
def test_local_additions_are_aggregated_when_read(aggregation: str, seen: float) -> None:
    strategy = mirrored(2)
    x = variable(strategy, synchronization=ON_READ, aggregation=getattr(Aggregation, aggregation))
    strategy.run(lambda: x.assign_add(number()))
    assert (copies(x), float(x.read_value()), float(strategy.extended.read_var(x))) == ([2.0, 3.0], seen, seen)
    assert x.trainable is False


@pytest.mark.parametrize("aggregation", ["SUM", "MEAN", "ONLY_FIRST_REPLICA"])
def test_workers_aggregate_their_additions(aggregation: str) -> None:
    def worker() -> float:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        x = variable(strategy, lambda: tf.constant(1.0), aggregation=getattr(Aggregation, aggregation))
        strategy.run(lambda: x.assign_add(number()))
        return float(x)

    wanted = {"SUM": 4.0, "MEAN": 2.5, "ONLY_FIRST_REPLICA": 2.0}[aggregation]
    assert collshim.launch(worker, 2, timeout=200) == [wanted, wanted]


def test_workers_take_the_initial_value_of_the_first() -> None:
    def worker() -> float:
        return float(variable(tf.distribute.MultiWorkerMirroredStrategy(), collshim.current().rank + 5.0))

    assert collshim.launch(worker, 2, timeout=200) == [5.0, 5.0]


def test_cross_replica_sum_assignment_is_divided() -> None:
    x = variable(mirrored(2), synchronization=ON_READ, aggregation=Aggregation.SUM)
    assert (float(x.assign(5.0)), copies(x)) == (5.0, [2.5, 2.5])


def test_cross_replica_assignment_gives_mirrored_values() -> None:
    found = variable(mirrored(2)).assign_sub(3.0)
    assert (type(found).__name__, copies(found)) == ("Mirrored", [-2.0, -2.0])


def test_update_calls_with_each_copy() -> None:
    strategy = mirrored(2)
    x = variable(strategy)
    grouped = strategy.extended.update(x, lambda copy, y: copy.assign_add(y), args=(2.0,))
    assert (type(grouped).__name__, copies(grouped)) == ("Mirrored", [3.0, 3.0])
    several = strategy.extended.update(x, lambda copy, y: copy.assign_add(y), args=(2.0,), group=False)
    assert [float(one) for one in several] == [5.0, 5.0]


def test_replica_update_runs_once_all_replicas_ask() -> None:
    strategy = mirrored(2)
    x = variable(strategy)

    def step() -> None:
        tf.distribute.get_strategy().extended._replica_ctx_update(x, lambda copy, y: copy.assign(y), (number(),))

    strategy.run(step)
    assert copies(x) == [1.0, 2.0]


def test_update_in_a_replica_gives_each_copy_its_replicas_argument() -> None:
    strategy = mirrored(2)
    x = variable(strategy)
    strategy.run(lambda: strategy.extended.update(x, lambda copy, y: copy.assign(y), (number(),)))
    assert copies(x) == [1.0, 2.0]


def test_variable_made_in_a_replica_has_all_replicas() -> None:
    strategy = mirrored(2)
    made: list[Any] = []
    strategy.run(lambda: made.append(tf.Variable(3.0)))
    assert (made[0] is made[1], copies(made[0])) == (True, [3.0, 3.0])


def test_strategy_knows_its_variables() -> None:
    strategy = mirrored(2)
    x = variable(strategy)
    assert strategy.extended.variable_created_in_scope(x)
    assert not strategy.extended.variable_created_in_scope(tf.Variable(1.0))
    assert strategy.extended.value_container(x.values[1]) is x
    elsewhere = tf.Variable(1.0)
    with strategy.scope():
        with strategy.extended.colocate_vars_with(x):
            pass
        with pytest.raises(ValueError, match="must only be passed a variable created in this"):
            strategy.extended.colocate_vars_with(elsewhere)
    with pytest.raises(RuntimeError, match=r'Need to be inside "with strategy\.scope\(\)'):
        strategy.extended.colocate_vars_with(x)


def test_collectives_take_variables() -> None:
    strategy = mirrored(2)
    x = variable(strategy, 2.0)
    found = strategy.run(lambda: tf.distribute.get_replica_context().all_reduce("SUM", x))
    assert copies(found) == [4.0, 4.0]


def test_call_for_each_replica_and_replica_all_reduce() -> None:
    strategy = mirrored(2)
    found = strategy.extended.call_for_each_replica(
        lambda x: strategy.extended._replica_ctx_all_reduce("SUM", x), args=(tf.constant(2.0),)
    )
    assert (copies(found), strategy.extended._use_merge_call()) == ([4.0, 4.0], True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"value": 1, "aggregation": Aggregation.MEAN}, "aggregation=MEAN and a non-floating dtype is not supported"),
        ({"synchronization": "x"}, "Invalid variable synchronization mode: x for variable: None"),
        ({"aggregation": "x"}, "Invalid variable aggregation mode: x for variable: None"),
        ({"synchronization": tf.VariableSynchronization.NONE}, "`NONE` variable synchronization mode"),
        ({"value": None}, "must be specified"),
    ],
)
def test_incompatible_modes_are_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        variable(mirrored(2), **arguments)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tf.Variable([1.0, 2.0]).assign([1.0]), "Shape mismatch.The variable shape"),
        (lambda: tf.Variable(1.0).assign(tf.constant(1)), "requested dtype float32"),
        (
            lambda: variable(mirrored(2), synchronization=ON_READ, aggregation=Aggregation.SUM).assign_add(1.0),
            "does not support `assign_add` in cross-replica context when aggregation is set",
        ),
        (
            lambda: variable(mirrored(2), synchronization=ON_READ).read_value(),
            "Could not convert from `tf.VariableAggregation` VariableAggregationV2.NONE",
        ),
    ],
)
def test_invalid_assignment_is_refused(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()
