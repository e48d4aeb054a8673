"""Keras's ``BatchNormalization(synchronized=True)``. The numbers were recorded on TensorFlow 2.21 with two CPUs."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored

pytestmark = pytest.mark.skipif(
    find_spec("keras") is None, reason="Keras is not installed: pip install collshim[keras]"
)

ROWS = np.arange(16, dtype=np.float32).reshape(8, 2) ** 1.5


def normalized(layer: Any, rows: Any, training: bool = True) -> list[Any]:
    """Return the layer's result, and the gradients of a weighted sum for the rows, the scale and the offset."""
    with tf.GradientTape() as tape:
        tape.watch(rows)
        found = layer(rows, training=training)
        weights = np.cos(np.arange(np.prod(found.shape), dtype=np.float32)).reshape(found.shape)
        total = tf.reduce_sum(found * tf.constant(weights))
    return [found, *tape.gradient(total, [rows, *layer.trainable_variables])]


def on_replicas(size: int, **arguments: Any) -> tuple[Any, list[list[Any]]]:
    strategy = mirrored(size)
    with strategy.scope():
        layer = tf.keras.layers.BatchNormalization(**arguments)
        layer.build((None, 2))
    parts = np.split(ROWS, size)
    rows = strategy.experimental_distribute_values_from_function(
        lambda one: tf.constant(parts[one.replica_id_in_sync_group])
    )
    results = strategy.run(lambda part: normalized(layer, part), (rows,))
    return layer, [[own.numpy() for own in strategy.experimental_local_results(result)] for result in results]


@pytest.mark.parametrize("size", [1, 2, 4])
def test_rows_of_all_replicas_are_normalized(size: int) -> None:
    layer, (found, *_) = on_replicas(size, synchronized=True, momentum=0.5)
    whole = np.concatenate(found)
    assert np.allclose(whole[:2], [[-1.229, -1.287], [-1.069, -1.067]], atol=1e-3)
    assert np.allclose(layer.moving_mean.numpy(), [10.858, 12.772], atol=1e-3)
    assert np.allclose(layer.moving_variance.numpy(), [156.708, 182.27], atol=2e-3)


def test_gradients_pass_to_the_rows_of_other_replicas() -> None:
    _, (_, rows, scale, offset) = on_replicas(2, synchronized=True)
    assert np.allclose(rows[0][:2], [[0.045, 0.029], [-0.035, -0.053]], atol=1e-3)
    assert np.allclose(rows[1][:2], [[0.044, 0.02], [-0.037, -0.063]], atol=1e-3)
    assert np.allclose(scale, [[-0.658, -0.13], [0.75, 1.078]], atol=1e-3)
    assert np.allclose(offset[0][0], 0.89, atol=1e-3)


def test_without_it_each_replica_normalizes_its_own_rows() -> None:
    layer, (found, *_) = on_replicas(2)
    assert np.allclose(found[0][:2], [[-1.141, -1.21], [-0.635, -0.573]], atol=1e-3)
    assert layer.synchronized is False


def test_short_floats_are_summed_in_float32() -> None:
    rows = mirrored(2).experimental_distribute_values_from_function(
        lambda one: tf.constant([60000.0, 40000.0 + 20000.0 * one.replica_id_in_sync_group], tf.float16)
    )
    mean, variance = mirrored(2).run(lambda part: tf.keras.ops.moments(part, [0], synchronized=True), (rows,))
    assert mean.values[0].dtype == variance.values[1].dtype == tf.float16
    assert float(mean.values[0]) == pytest.approx(55000, rel=1e-3)
    assert float(variance.values[0]) == 65504


def test_ops_take_the_moments_of_all_replicas() -> None:
    strategy = mirrored(2)
    rows = strategy.experimental_distribute_values_from_function(
        lambda one: tf.constant([[1.0, 2.0], [3.0, 6.0]]) * (1.0 + one.replica_id_in_sync_group)
    )

    def moments(part: Any, keepdims: bool) -> Any:
        return tf.keras.ops.moments(part, 0, keepdims, synchronized=True)

    for keepdims, shape in ((False, (2,)), (True, (1, 2))):
        mean, variance = strategy.run(moments, (rows, keepdims))
        for own in (*mean.values, *variance.values):
            assert own.shape == shape
        assert np.allclose(mean.values[1].numpy().ravel(), [3.0, 6.0])
        assert np.allclose(variance.values[0].numpy().ravel(), [3.5, 14.0])
    with strategy.scope():
        assert np.allclose(tf.keras.ops.moments(np.array([1, 3], np.float32), 0, synchronized=True)[0].numpy(), 2.0)


def test_the_layer_can_be_saved_in_a_configuration() -> None:
    layer = tf.keras.layers.BatchNormalization(momentum=0.5, synchronized=True)
    config = layer.get_config()
    assert (config["synchronized"], config["momentum"]) == (True, 0.5)
    assert tf.keras.layers.BatchNormalization.from_config(config).synchronized is True


def fitted(strategy: Any) -> tuple[list[float], list[Any]]:
    layers, rows = tf.keras.layers, np.sin(np.arange(30, dtype=np.float32)).reshape(10, 3)
    with strategy.scope():
        first = layers.Dense(2, kernel_initializer=tf.keras.initializers.Constant(0.3))
        normalization = layers.BatchNormalization(momentum=0.5, synchronized=True)
        last = layers.Dense(1, kernel_initializer="ones")
        model = tf.keras.Sequential([layers.Input((3,)), first, normalization, last])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse")
    wanted = np.cos(np.arange(10, dtype=np.float32)).reshape(10, 1)
    history = model.fit(rows, wanted, batch_size=4, epochs=2, shuffle=False, verbose=0)
    return history.history["loss"], [weight.tolist() for weight in model.get_weights()]


@pytest.mark.parametrize("size", [1, 2])
def test_fit_is_that_of_one_replica_with_all_rows(size: int) -> None:
    losses, weights = fitted(mirrored(size))
    assert losses == pytest.approx([2.3521, 0.6435], abs=1e-3)
    assert np.allclose(weights[2:4], [[0.373, 0.373], [-0.019, -0.019]], atol=1e-3)
    assert np.allclose(weights[4:6], [[0.038, 0.038], [0.067, 0.067]], atol=1e-3)


def test_fit_on_workers_normalizes_the_rows_of_all() -> None:
    for losses, weights in collshim.launch(lambda: fitted(tf.distribute.MultiWorkerMirroredStrategy()), 2, timeout=200):
        assert losses == pytest.approx([2.3521, 0.6435], abs=1e-3)
        assert np.allclose(weights[2:4], [[0.373, 0.373], [-0.019, -0.019]], atol=1e-3)
