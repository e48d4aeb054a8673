"""``tf.train.ExponentialMovingAverage`` in replicas and across them, with the numbers of TensorFlow 2.21."""

from __future__ import annotations

import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored, replica, run_workers


def test_replicas_average_their_mean() -> None:
    strategy, average = mirrored(2), tf.train.ExponentialMovingAverage(0.25)
    with strategy.scope():
        weight = tf.Variable([1.0, 2.0], name="w", aggregation=tf.VariableAggregation.MEAN)

    def step() -> tf.Tensor:
        average.apply([weight])
        weight.assign_sub([0.5, 0.5])
        average.apply([weight])
        found: tf.Tensor = average.average(weight).read_value()
        return found

    assert [one.numpy().tolist() for one in strategy.run(step).values] == [[0.625, 1.625]] * 2
    assert average.average_name(weight) == "w/ExponentialMovingAverage"


def test_a_variable_read_together_is_averaged_over_replicas() -> None:
    def step() -> float:
        average = tf.train.ExponentialMovingAverage(0.5)
        own = tf.Variable(
            0.0, synchronization=tf.VariableSynchronization.ON_READ, aggregation=tf.VariableAggregation.MEAN
        )
        average.apply([own])
        own.assign(2.0 + 2.0 * replica())
        average.apply([own])
        return float(average.average(own).numpy())

    assert run_workers(2, step) == [1.5, 1.5]


def test_updates_lower_the_decay() -> None:
    average, weight = tf.train.ExponentialMovingAverage(0.9, num_updates=1), tf.Variable(4.0)
    average.apply([weight])
    weight.assign(8.0)
    average.apply([weight])
    assert float(average.average(weight)) == pytest.approx(7.2727270)


def test_tensors_and_integers_are_refused() -> None:
    average = tf.train.ExponentialMovingAverage(0.9)
    with pytest.raises(TypeError, match="does not support non-Variable tensors"):
        average.apply([tf.constant(1.0)])
    with pytest.raises(TypeError, match="must be half, float, or double: Variable:0"):
        average.apply([tf.Variable(1)])
    assert average.average(tf.Variable(1.0)) is None


@pytest.mark.parametrize(("aggregation", "wanted"), [("MEAN", 2.5), ("SUM", 2.5), ("NONE", 2.5)])
def test_an_average_is_the_same_in_all_replicas(aggregation: str, wanted: float) -> None:
    strategy, average = mirrored(2), tf.train.ExponentialMovingAverage(0.5)
    with strategy.scope():
        own = tf.Variable(
            1.0,
            synchronization=tf.VariableSynchronization.ON_READ,
            aggregation=tf.VariableAggregation[aggregation],
        )

    def step() -> None:
        average.apply([own])
        own.assign(3.0 + 2.0 * replica())
        average.apply([own])

    strategy.run(step)
    found = average.average(own)
    assert ([float(one) for one in found.values], float(found.numpy())) == ([wanted, wanted], wanted)
    assert found.aggregation is tf.VariableAggregation.NONE


def test_variables_are_found_by_the_names_of_their_averages() -> None:
    average, weight, other = tf.train.ExponentialMovingAverage(0.5), tf.Variable(1.0, name="w"), tf.Variable(2.0)
    average.apply([weight])
    assert average.variables_to_restore() == {"w/ExponentialMovingAverage": weight}
    assert list(average.variables_to_restore([other])) == ["Variable/ExponentialMovingAverage"]
