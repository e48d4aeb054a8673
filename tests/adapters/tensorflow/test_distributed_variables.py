"""What a variable with a copy for each replica is besides its values: TensorFlow 2.21 on two CPUs."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored, replica

CPUS = ["CPU:0", "CPU:1"]


def made(aggregation: str = "MEAN", synchronization: str = "AUTO", value: Any = 0.0) -> tuple[Any, Any]:
    strategy = tf.distribute.MirroredStrategy(CPUS)
    with strategy.scope():
        variable = tf.Variable(
            value,
            synchronization=tf.VariableSynchronization[synchronization],
            aggregation=tf.VariableAggregation[aggregation],
        )
    return strategy, variable


def values(variable: Any) -> list[Any]:
    return [one.numpy().tolist() for one in variable.values]


def test_it_is_a_tf_variable_on_its_replicas_devices() -> None:
    strategy, variable = made()
    kinds: Any = tf.Variable
    assert isinstance(variable, kinds)
    assert [one.device.rpartition("/")[2] for one in variable.values] == ["device:CPU:0", "device:CPU:1"]
    assert variable.synchronization is tf.VariableSynchronization.ON_WRITE
    assert all(strategy.extended.value_container(one) is variable for one in variable.values)
    with tf.device("CPU:1"):
        assert tf.Variable(1.0).device.endswith("CPU:1")


@pytest.mark.parametrize("synchronization", ["AUTO", "ON_READ"])
def test_deep_copies_have_their_strategy_and_their_own_values(synchronization: str) -> None:
    strategy, variable = made(synchronization=synchronization, value=[1.0])
    other = copy.deepcopy(variable)
    other.values[0].assign([5.0])
    assert (type(other), other.distribute_strategy) == (type(variable), strategy)
    assert (values(variable), values(other)) == ([[1.0], [1.0]], [[5.0], [1.0]])
    alone = tf.Variable(1.0)
    copy.deepcopy(alone).assign(2.0)
    assert float(alone) == 1.0


def test_only_copies_must_be_synchronized() -> None:
    alone = tf.distribute.OneDeviceStrategy("CPU:0")
    with alone.scope():
        variable = tf.Variable(1.0, synchronization=tf.VariableSynchronization.NONE)
    assert variable.synchronization is tf.VariableSynchronization.NONE
    with pytest.raises(ValueError, match="`NONE` variable synchronization mode is not supported"):
        made(synchronization="NONE")


def test_shapes_are_returned_whole() -> None:
    strategy, _ = made()
    assert strategy.run(lambda: tf.zeros([2, 3]).shape).values == (tf.TensorShape([2, 3]),) * 2


def test_one_number_of_all_replicas_is_no_sum() -> None:
    strategy, variable = made("SUM")
    with pytest.raises(ValueError, match=r"value 5.0 cannot be reduced with the given reduce op ReduceOp.SUM"):
        strategy.run(lambda: variable.assign(5.0))
    strategy.run(lambda: variable.assign(tf.identity(5.0)))
    assert values(variable) == [10.0, 10.0]


def test_numbers_take_the_variables_dtype() -> None:
    strategy = tf.distribute.MirroredStrategy(CPUS)
    with strategy.scope():
        step = tf.Variable(0, dtype=tf.int64, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    strategy.run(lambda: step.assign_add(1))
    assert values(step) == [1, 1]


def test_an_update_reads_and_writes_the_copy_that_is_updated() -> None:
    strategy, variable = made("SUM", "ON_READ")
    strategy.run(lambda: variable.assign(replica() + 1.0))
    with strategy.scope():
        seen = strategy.extended.update(variable, lambda _: variable + 0.0, group=False)
        strategy.extended.update(variable, lambda _: variable.assign(3.0))
    assert ([float(one) for one in seen], values(variable)) == ([1.0, 2.0], [3.0, 3.0])


def test_only_a_strategys_variable_is_updated() -> None:
    strategy, other = mirrored(2), tf.Variable(1.0)
    with pytest.raises(AssertionError, match="should be made in the scope of a strategy"):
        strategy.extended.update(other, lambda copy: copy.assign(2.0))
    assert float(tf.distribute.get_strategy().extended.update(other, lambda copy: copy.assign(2.0))) == 2


def test_ungrouped_updates_give_each_leaf_of_all_copies() -> None:
    strategy, variable = made()
    found = strategy.extended.update(variable, lambda one: {"a": one.read_value(), "b": None}, group=False)
    assert ([float(one) for one in found["a"]], found["b"]) == ([0.0, 0.0], (None,))


def test_identity_and_bits_are_those_of_the_own_copy() -> None:
    strategy, variable = made("SUM", "ON_READ", 6)

    def step() -> tuple[Any, ...]:
        variable.assign(replica() + 6)
        return tf.identity(variable), variable & 3, 8 | variable, ~variable

    assert [values(one) for one in strategy.run(step)] == [[6, 7], [2, 3], [14, 15], [-7, -8]]


def test_writes_that_are_not_read_return_nothing() -> None:
    _, variable = made()
    assert variable.assign(1.0, read_value=False) is None
    assert tf.Variable(1.0).assign_add(1.0, read_value=False) is None
    _, summed = made("NONE", "ON_READ")
    with pytest.raises(ValueError, match="Could not convert from `tf"):
        summed.assign(1.0)


def test_a_tape_tells_the_whole_variable() -> None:
    strategy, variable = made(value=3.0)

    def step() -> Any:
        with tf.GradientTape() as tape:
            square = variable * variable
        (watched,) = tape.watched_variables()
        assert watched is variable
        return tape.gradient(square, watched)

    assert values(strategy.run(step)) == [6.0, 6.0]


def test_a_nested_function_may_make_a_variable() -> None:
    strategy = tf.distribute.MirroredStrategy(CPUS)

    class Model:
        weight: Any = None

        @tf.function
        def __call__(self) -> Any:
            if self.weight is None:
                self.weight = tf.Variable(1.0)
            return self.weight + 1.0

    assert values(strategy.run(Model())) == [2.0, 2.0]


def test_reductions_of_mirrored_variables_are_means_only() -> None:
    strategy, variable = made(value=2.0)
    assert float(strategy.reduce("MEAN", variable, axis=None)) == 2.0
    with pytest.raises(AssertionError, match="value is Mirrored"):
        strategy.reduce("SUM", variable, axis=None)
    slices = strategy.run(lambda: tf.IndexedSlices(tf.identity([1.0]), tf.constant([replica()]), tf.constant([2])))
    assert float(strategy.reduce("SUM", slices, axis=0)) == 2.0


def test_texts_and_refusals_are_those_of_tensorflow() -> None:
    _, variable = made()
    assert str(variable.aggregation) == "VariableAggregationV2.MEAN"
    for one in (variable, variable.values[0]):
        assert repr(one.ref()) == f"<Reference wrapping {one!r}>"
        with pytest.raises(RuntimeError, match="not supported when eager execution is enabled"):
            assert one.initial_value


def test_aggregations_and_hints_name_their_counterparts() -> None:
    assert tf.distribute.ReduceOp.from_variable_aggregation(tf.VariableAggregation.MEAN) is tf.distribute.ReduceOp.MEAN
    hints = tf.distribute.experimental.CommunicationOptions(1, 2.0)
    assert hints.merge(tf.distribute.experimental.CommunicationOptions(3)).bytes_per_pack == 3
    assert hints.merge(None).timeout_seconds == 2.0
    with pytest.raises(ValueError, match="communication_options must be an instance"):
        tf.distribute.MultiWorkerMirroredStrategy(communication_options=3)  # type: ignore[arg-type]


def test_workers_have_the_first_workers_bits() -> None:
    def worker() -> list[Any]:
        strategy, own = tf.distribute.MultiWorkerMirroredStrategy(), collshim.current().rank == 0
        with strategy.scope():
            flag: Any = tf.Variable(own, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
        found = [bool(flag.numpy())]
        strategy.run(lambda: flag.assign(not own))
        return [*found, bool(flag.numpy())]

    assert collshim.launch(worker, 2, timeout=200) == [[True, False]] * 2


def test_an_initial_value_is_made_in_the_first_replica() -> None:
    strategy = tf.distribute.MirroredStrategy(CPUS)
    found = strategy.run(lambda: tf.Variable(lambda: replica() + 5.0))
    assert values(found) == [5.0, 5.0]


@pytest.mark.parametrize("aggregation", ["NONE", "MEAN", "ONLY_FIRST_REPLICA"])
def test_a_part_is_assigned_in_every_copy(aggregation: str) -> None:
    strategy = mirrored(2)
    with strategy.scope():
        variable = tf.Variable([[1.0, 2.0], [3.0, 4.0]], aggregation=tf.VariableAggregation[aggregation])
    variable[0].assign([7.0, 7.0])
    for own in variable.values:
        assert own.numpy().tolist() == [[7.0, 7.0], [3.0, 4.0]]

    def assign() -> None:
        replica = tf.distribute.get_replica_context().replica_id_in_sync_group
        variable[1, :1].assign([float(replica)])

    strategy.run(assign)
    assert [own.numpy().tolist()[1] for own in variable.values] == [[0.0, 4.0], [1.0, 4.0]]


def test_a_part_of_a_variable_read_together_is_assigned_in_replicas_only() -> None:
    strategy = mirrored(2)
    with strategy.scope():
        variable = tf.Variable(
            [1.0, 2.0],
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation.SUM,
        )

    def assign() -> None:
        variable[0].assign(7.0)

    strategy.run(assign)
    assert variable.numpy().tolist() == [14.0, 4.0]
    assert not hasattr(variable[0], "assign")
