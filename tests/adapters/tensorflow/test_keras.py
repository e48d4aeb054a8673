"""``tf.keras``, Keras 3 on torch: expected values are from TensorFlow 2.21.0 with Keras 3.15.1 on two CPUs."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import Program, mirrored

pytestmark = pytest.mark.skipif(
    find_spec("keras") is None, reason="Keras is not installed: pip install collshim[keras]"
)
EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "examples" / "tensorflow_keras.py"
ROWS = np.array([[1, 2], [2, 4]], "float32")


def variable(value: Any, **options: Any) -> Any:
    return tf.keras.Variable(np.array(value, "float32"), **options)


def linear() -> Any:
    dense = tf.keras.layers.Dense
    return tf.keras.Sequential([tf.keras.Input((2,)), *(dense(n, kernel_initializer="ones") for n in (3, 1))])


def rows_of_replicas(strategy: Any) -> Any:
    """Return the first row for the first replica, the second for the second."""
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(ROWS[context.replica_id_in_sync_group][None])
    )


def on_two(build: Callable[[], Any], step: Callable[[Any, Any], Any]) -> list[list[Any]]:
    """Return each replica's results of ``step``, given what ``build`` made in the scope, and its row; as lists."""
    strategy = mirrored(2)
    with strategy.scope():
        made = build()
    found = strategy.run(lambda row: [np.asarray(one) for one in step(made, row)], (rows_of_replicas(strategy),))
    return [[one.values[place].tolist() for one in found] for place in range(2)]


PROGRAM = """
import os
import sys
import collshim.tensorflow as tf

def told():
    try:
        tf.keras
    except AttributeError as error:
        print(error)

os.environ["KERAS_BACKEND"] = "jax"
told()
del os.environ["KERAS_BACKEND"]
sys.modules["keras"] = None
told()
"""


def test_missing_keras_is_explained_in_one_sentence(program: Program) -> None:
    other_backend, not_installed = program(PROGRAM).stdout.splitlines()
    assert other_backend == (
        "module 'collshim.tensorflow' has no attribute 'keras': KERAS_BACKEND=jax: should be torch, the only backend "
        "of tf.keras in collshim"
    )
    assert not_installed.endswith("tf.keras is Keras 3 on torch, which is not installed: pip install 'keras>=3.10'")


@pytest.mark.slow
def test_keras_names_are_the_same_by_both_paths() -> None:
    with collshim.stand_in("tensorflow"):
        import tensorflow
        from tensorflow.keras.layers import Dense

        assert Dense is tf.keras.layers.Dense is tensorflow.keras.layers.Dense
    assert tf.keras.losses.Reduction.NONE == "none"
    assert tf.keras.backend.backend() == "torch"


def test_layers_take_and_return_tensors_with_gradients() -> None:
    x, layer = tf.Variable([[1.0, 2.0]]), tf.keras.layers.Dense(1, kernel_initializer="ones")
    with tf.GradientTape() as tape:
        y = layer(x)
    dx, dkernel = tape.gradient(y, [x, layer.kernel])
    assert isinstance(y, tf.Tensor)
    assert (dx.numpy().tolist(), dkernel.numpy().tolist()) == ([[1.0, 1.0]], [[1.0], [2.0]])


def test_tensorflow_functions_take_keras_variables() -> None:
    weight = variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(weight))
    before = tf.convert_to_tensor(weight)
    weight.assign([5.0, 5.0])
    assert tape.gradient(loss, weight).numpy().tolist() == [2.0, 4.0]
    assert before.numpy().tolist() == [1.0, 2.0]


def test_step_does_not_change_recorded_values() -> None:
    weight, optimizer = variable(2.0), tf.keras.optimizers.SGD(1.0)
    with tf.GradientTape(persistent=True) as tape:
        loss = weight * weight * weight
        optimizer.apply_gradients([(tf.constant(1.0), weight)])
    assert [float(tape.gradient(loss, weight)) for _ in range(2)] == [12.0, 12.0]
    assert float(weight) == 1.0


def test_watched_untrainable_variable_has_a_gradient() -> None:
    weight = variable(2.0, trainable=False)
    with tf.GradientTape() as tape:
        tape.watch(weight)
        loss = weight * weight
    assert float(tape.gradient(loss, weight)) == 4.0


def test_step_uses_the_summed_gradients_of_all_replicas() -> None:
    def build() -> Any:
        return linear(), tf.keras.optimizers.Adam(0.1), tf.keras.losses.MeanSquaredError()

    def step(made: Any, row: Any) -> Any:
        model, optimizer, mean_squared = made
        with tf.GradientTape() as tape:
            loss = mean_squared(tf.ones((1, 1)), model(row, training=True)) / 2
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.variables, strict=True))
        return loss, optimizer.iterations, *model.get_weights()

    first, second = on_two(build, step)
    weights: list[Any] = [[[0.9000007] * 3] * 2, [-0.0999993] * 3, [[0.9000007]] * 3, [-0.0999993]]
    for replica, loss in ((first, 16.0), (second, 72.25)):
        assert replica[:2] == [loss, 1]
        for found, wanted in zip(replica[2:], weights, strict=True):
            assert np.allclose(found, wanted, atol=1e-6)


OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "momentum": lambda: tf.keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True),
    "weight decay": lambda: tf.keras.optimizers.AdamW(0.1, weight_decay=0.1),
    "schedule": lambda: tf.keras.optimizers.RMSprop(
        tf.keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=1, decay_rate=0.5)
    ),
    "average": lambda: tf.keras.optimizers.Lion(0.01, use_ema=True, ema_overwrite_frequency=2),
    "accumulated": lambda: tf.keras.optimizers.Nadam(0.1, gradient_accumulation_steps=2),
    "not torch's": lambda: tf.keras.optimizers.Adafactor(0.1),
}


def trained(strategy: Any, optimizer: Callable[[], Any]) -> list[Any]:
    """Return the first replica's weights after four steps on one global batch, and the number of steps."""
    with strategy.scope():
        model, chosen = linear(), optimizer()
    batch = tf.data.Dataset.from_tensor_slices(ROWS).batch(2)

    def step(rows: Any) -> None:
        with tf.GradientTape() as tape:
            loss = tf.nn.compute_average_loss(tf.reduce_sum(model(rows) ** 2, axis=1), global_batch_size=2)
        chosen.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.variables, strict=True))

    for _ in range(4):
        for rows in strategy.experimental_distribute_dataset(batch):
            strategy.run(step, (rows,))
    return [*model.get_weights(), chosen.iterations.numpy()]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_two_replicas_train_as_one(name: str) -> None:
    for one, two in zip(*(trained(mirrored(size), OPTIMIZERS[name]) for size in (1, 2)), strict=True):
        assert np.allclose(one, two, atol=1e-5)


def test_workers_start_equal_and_train_as_one() -> None:
    def worker() -> list[Any]:
        return trained(tf.distribute.MultiWorkerMirroredStrategy(), OPTIMIZERS["momentum"])

    def drawn() -> Any:
        with tf.distribute.MultiWorkerMirroredStrategy().scope():
            return tf.keras.initializers.RandomNormal()((3,)), variable(np.random.default_rng().normal(size=3)).numpy()

    wanted = trained(mirrored(1), OPTIMIZERS["momentum"])
    for found in collshim.launch(worker, 2, timeout=200):
        assert all(np.allclose(one, two, atol=1e-5) for one, two in zip(wanted, found, strict=True))
    (_, first), (_, second) = collshim.launch(drawn, 2, timeout=200)
    assert first.tolist() == second.tolist()


def test_gradients_are_clipped_before_the_sum() -> None:
    def build() -> Any:
        return variable([0.0, 0.0]), tf.keras.optimizers.SGD(1.0, clipnorm=1.0)

    def step(made: Any, row: Any) -> Any:
        made[1].apply_gradients([(10 * row[0], made[0])])
        return (made[0],)

    for (weight,) in on_two(build, step):
        assert np.allclose(weight, [-0.8944272, -1.7888544])


def test_optimizer_steps_tensorflow_variables_too() -> None:
    def build() -> Any:
        return tf.Variable([0.0, 0.0]), tf.keras.optimizers.SGD(1.0, momentum=0.5)

    def step(made: Any, row: Any) -> Any:
        for _ in range(2):
            made[1].apply_gradients([(row[0], made[0])])
        return (made[0],)

    assert on_two(build, step) == [[[-7.5, -15.0]], [[-7.5, -15.0]]]


def test_variable_copy_of_the_first_replica_is_visible() -> None:
    strategy = mirrored(2)
    with strategy.scope():
        weight = variable([0.0, 0.0])

    def step(row: Any) -> Any:
        weight.assign(row[0])
        return weight.numpy()

    found = strategy.run(step, (rows_of_replicas(strategy),))
    assert [one.tolist() for one in found.values] == ROWS.tolist()
    assert weight.numpy().tolist() == [1.0, 2.0]


@pytest.mark.parametrize(
    ("aggregation", "wanted"), [("sum", [3.0, 6.0]), ("mean", [1.5, 3.0]), ("only_first_replica", [1.0, 2.0])]
)
def test_replica_assignments_are_aggregated(aggregation: str, wanted: list[float]) -> None:
    def step(weight: Any, row: Any) -> Any:
        weight.assign_add(row[0])
        return (weight,)

    assert on_two(lambda: variable([0.0, 0.0], aggregation=aggregation), step) == [[wanted], [wanted]]


def test_metrics_are_summed_over_replicas() -> None:
    strategy = mirrored(2)
    with strategy.scope():
        mean = tf.keras.metrics.Mean()

    def step(row: Any) -> Any:
        mean.update_state(row)
        return mean.result()

    found = strategy.run(step, (rows_of_replicas(strategy),))
    assert [float(one) for one in found.values] == [1.5, 3.0]
    assert f"{mean.result()} {mean.result() * 100:.1f}" == "2.25 225.0"
    assert [one.numpy() for one in mean.variables] == [4.5, 2.0]
    mean.reset_state()
    assert [one.numpy() for one in mean.variables] == [0.0, 0.0]
    mean.update_state(4.0)
    assert [one.numpy() for one in mean.variables] == [4.0, 1.0]


def test_accuracy_covers_the_rows_of_all_replicas() -> None:
    strategy = mirrored(2)
    with strategy.scope():
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy()
    strategy.run(lambda row: accuracy.update_state(tf.constant([0]), row - 2.0), (rows_of_replicas(strategy),))
    strategy.run(lambda row: accuracy.update_state(tf.constant([1]), row), (rows_of_replicas(strategy),))
    assert float(accuracy.result()) == 0.5


def test_batch_mean_is_divided_by_the_replica_count() -> None:
    mean_squared = tf.keras.losses.MeanSquaredError

    def step(made: Any, row: Any) -> Any:
        return [loss(tf.zeros((1, 2)), row) for loss in made]

    def build() -> Any:
        return [mean_squared(reduction=name) for name in ("sum_over_batch_size", "sum", "none")]

    assert on_two(build, step) == [[1.25, 2.5, [2.5]], [5.0, 10.0, [10.0]]]
    assert float(mean_squared()(tf.zeros((1, 2)), ROWS[:1])) == 2.5


def test_batches_are_normalized_per_replica() -> None:
    def build() -> Any:
        layer = tf.keras.layers.BatchNormalization()
        layer.build((None, 2))
        return layer

    def step(layer: Any, row: Any) -> Any:
        return layer(row, training=True), layer.moving_mean

    (_, first), (_, second) = on_two(build, step)
    assert np.allclose([first, second], [[0.01, 0.02], [0.02, 0.04]])


def test_first_build_in_a_replica_counts_for_all() -> None:
    def build() -> Any:
        return tf.keras.layers.Dense(2), tf.keras.optimizers.Adam(0.1)

    def step(made: Any, row: Any) -> Any:
        layer, optimizer = made
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(layer(row))
        optimizer.apply_gradients(zip(tape.gradient(loss, layer.variables), layer.variables, strict=True))
        return layer.kernel, *optimizer.variables, np.float32(len(layer.variables))

    first, second = on_two(build, step)
    assert first == second
    assert first[-1] == 2.0


def misplaced(optimizer: Any, weight: Any) -> Callable[[], None]:
    return lambda: optimizer.apply_gradients([(tf.constant(1.0), weight)])


def test_step_outside_its_strategy_is_refused() -> None:
    strategy, outside = mirrored(2), (tf.keras.optimizers.SGD(1.0), variable(1.0))
    with strategy.scope():
        inside = tf.keras.optimizers.SGD(1.0), variable(1.0)
        with pytest.raises(RuntimeError, match="should be called in the function that strategy"):
            misplaced(*inside)()
    with pytest.raises(RuntimeError, match="should be called in the function that strategy"):
        misplaced(*inside)()
    with pytest.raises(RuntimeError, match=r"Mixing different .*: a MirroredStrategy is not no strategy, under which"):
        strategy.run(misplaced(*outside))
    with pytest.raises(AssertionError, match=r"the variable .* was made under no strategy, should be made under a Mir"):
        strategy.run(misplaced(inside[0], outside[1]))


@pytest.mark.parametrize("strategy", [tf.distribute.OneDeviceStrategy("CPU:0"), mirrored(1)])
def test_fit_trains_with_one_replica(strategy: Any) -> None:
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1, kernel_initializer="ones")])
        model.compile("sgd", "mse", metrics=["mae"])
    told = model.fit(np.ones((4, 2), "float32"), np.zeros((4, 1), "float32"), verbose=0, epochs=2).history
    assert told == {"loss": pytest.approx([4.0, 3.5344]), "mae": pytest.approx([2.0, 1.88])}


def test_example_on_two_threads_matches_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def numbers(replicas: int) -> list[float]:
        monkeypatch.setattr(sys, "argv", [str(EXAMPLE), str(replicas)])
        with collshim.stand_in("tensorflow"):
            runpy.run_path(str(EXAMPLE), run_name="__main__")
        words = capsys.readouterr().out.replace("[", " ").replace("]", " ").replace(",", " ").split()
        return [float(word) for word in words if word[-1].isdigit() and "/" not in word]

    assert numbers(2) == pytest.approx(numbers(1), abs=1e-5)
