"""``CentralStorageStrategy``: variables exist once; results are those of TensorFlow 2.21 on two logical CPUs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collshim
import collshim.tensorflow as tf

pytestmark = pytest.mark.threads

KERAS = pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed: pip install collshim[keras]")
CentralStorageStrategy = tf.distribute.experimental.CentralStorageStrategy
Aggregation = tf.VariableAggregation
CPU = "/job:localhost/replica:0/task:0/device:CPU:"


def two() -> Any:
    return CentralStorageStrategy(["CPU:0", "CPU:1"], "CPU:0")


def replica() -> Any:
    return tf.cast(tf.distribute.get_replica_context().replica_id_in_sync_group, tf.float32)


def test_one_replica_has_ordinary_variables() -> None:
    strategy = CentralStorageStrategy()
    with strategy.scope():
        variable = tf.Variable(1.0)
    assert (strategy.num_replicas_in_sync, type(variable).__name__) == (1, "Variable")
    assert strategy.extended.parameter_devices == (f"{CPU}0",)
    strategy.run(lambda: variable.assign_add(1.0))
    assert float(variable) == 2


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"aggregation": Aggregation.MEAN}, 2.5),
        ({"aggregation": Aggregation.SUM}, 4.0),
        ({"aggregation": Aggregation.SUM, "synchronization": tf.VariableSynchronization.ON_READ}, 4.0),
        ({"aggregation": Aggregation.ONLY_FIRST_REPLICA}, 2.0),
    ],
)
def test_replicas_write_one_variable_together(more: dict[str, Any], expected: float) -> None:
    strategy = two()
    with strategy.scope():
        variable: Any = tf.Variable(1.0, **more)
    assert (variable.device, isinstance(variable, tf.distribute.DistributedValues)) == (f"{CPU}0", False)
    assert repr(variable) == str(variable) == "<tf.Variable 'Variable:0' shape=() dtype=float32, numpy=1.0>"
    seen = strategy.run(lambda: variable.assign_add(replica() + 1))
    assert float(variable) == float(seen) == expected
    read = strategy.experimental_local_results(strategy.run(lambda: variable + replica()))
    assert [float(part) for part in read] == [expected, expected + 1]


def test_variable_is_updated_once_across_replicas() -> None:
    strategy = two()
    with strategy.scope():
        variable = tf.Variable(1.0)
        variable.assign(3.0)
        assert float(strategy.extended.update(variable, lambda copy: copy.assign_add(2.0))) == 5
    with pytest.raises(ValueError, match="You must specify an aggregation method to update a AggregatingVariable"):
        strategy.run(lambda: variable.assign_add(1.0))
    assert float(variable) == 5


def test_replicas_change_rows_one_after_the_other() -> None:
    strategy = two()
    with strategy.scope():
        variable = tf.Variable([1.0, 2.0, 3.0])

    def add() -> None:
        rows = tf.stack([replica() + 2])
        variable.scatter_add(tf.IndexedSlices(rows, tf.constant([1])))

    strategy.run(add)
    assert variable.numpy().tolist() == [1.0, 7.0, 3.0]
    assert variable.gather_nd([[1]]).numpy().tolist() == [7.0]


def test_variable_is_one_value_for_all_replicas() -> None:
    strategy = two()
    with strategy.scope():
        count = tf.Variable(1, aggregation=Aggregation.MEAN)
    assert strategy.experimental_local_results(count) == (count,)
    assert int(strategy.reduce("SUM", strategy.run(lambda: count + 1), axis=None)) == 4
    with pytest.raises(ValueError, match="A non-DistributedValues value"):
        strategy.reduce("SUM", count, axis=None)
    count.assign(
        strategy.experimental_distribute_values_from_function(lambda place: place.replica_id_in_sync_group + 5)
    )
    assert count.numpy() == 5
    with pytest.raises(ValueError, match="requested dtype int32 for Tensor with dtype float64"):
        strategy.run(lambda: count.assign(tf.cast(replica(), tf.int32)))


def test_devices() -> None:
    strategy = CentralStorageStrategy(["CPU:1", "CPU:1"], "CPU:7")
    assert strategy.extended.worker_devices == (f"{CPU}1",) * 2
    assert strategy.extended.parameter_devices == (f"{CPU}7",)
    for wrong in ("CPU:0", ["TPUX:0"]):
        with pytest.raises(ValueError, match="Unknown attribute") as caught:
            CentralStorageStrategy(wrong)
        assert isinstance(caught.value, collshim.ArgumentError)


def rows() -> tuple[Any, Any]:
    inputs = np.random.default_rng(0).standard_normal((16, 3)).astype("float32")
    return inputs, inputs @ np.array([[1.0], [2.0], [3.0]], np.float32)


WEIGHTS = [1.219, 1.0137, 1.76408]  # after three epochs


def test_custom_loop_trains_and_saves(tmp_path: Path) -> None:
    strategy = two()
    data = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(rows()).batch(8))
    with strategy.scope():
        weight: Any = tf.Variable(tf.zeros([3, 1]), aggregation=Aggregation.SUM)
        bias: Any = tf.Variable(0.0, aggregation=Aggregation.SUM)

    @tf.function
    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((tf.matmul(x, weight) + bias - y) ** 2) / 8.0
        gradients = tape.gradient(loss, [weight, bias])
        weight.assign_sub(0.1 * gradients[0])
        bias.assign_sub(0.1 * gradients[1])
        return loss

    losses = [strategy.reduce("SUM", strategy.run(step, args=batch), axis=None) for _ in range(3) for batch in data]
    expected = [8.205996, 11.262471, 2.938587, 5.647166, 1.274869, 3.168153]
    np.testing.assert_allclose([float(loss) for loss in losses], expected, rtol=1e-5)
    np.testing.assert_allclose(weight.numpy().ravel(), WEIGHTS, atol=1e-5)
    checkpoint = tf.train.Checkpoint(weight=weight)
    prefix, kept = checkpoint.save(tmp_path / "x"), weight.numpy().copy()
    weight.assign(tf.zeros([3, 1]))
    checkpoint.restore(prefix)
    assert weight.numpy().tolist() == kept.tolist()


@KERAS
def test_keras_trains() -> None:
    with two().scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer="zeros")])
        model.compile(optimizer=tf.keras.optimizers.SGD(0.1), loss="mse")
    model.fit(tf.data.Dataset.from_tensor_slices(rows()).batch(8), epochs=3, verbose=0)
    np.testing.assert_allclose(np.ravel(model.get_weights()[0]), WEIGHTS, atol=1e-5)
