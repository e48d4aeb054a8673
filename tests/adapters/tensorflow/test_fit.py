"""``model.fit`` and the like under strategies; numbers are those of TensorFlow 2.21 with Keras 3.15 on one CPU."""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored

pytestmark = [
    pytest.mark.threads,
    pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed: pip install collshim[keras]"),
]

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((48, 6, 6, 1)).astype("float32")
Y = RANDOM.integers(0, 3, 48)


def batches(size: int = 16) -> Any:
    return tf.data.Dataset.from_tensor_slices((X, Y)).batch(size)


def compiled(strategy: Any) -> Any:
    layers, drawn = tf.keras.layers, np.random.default_rng(1)
    with strategy.scope():
        regularizer = tf.keras.regularizers.L2(0.01)
        model = tf.keras.Sequential(
            [
                layers.Input((6, 6, 1)),
                layers.Conv2D(4, 3, activation="relu", kernel_regularizer=regularizer),
                layers.Flatten(),
                layers.Dense(3),
            ]
        )
        model.set_weights([drawn.normal(scale=0.4, size=w.shape).astype("float32") for w in model.get_weights()])
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(loss=loss, optimizer=tf.keras.optimizers.Adam(0.02), metrics=["accuracy"])
    return model


def fitted(strategy: Any, data: Any, **options: Any) -> list[float]:
    """Return the losses and metrics of a training, and the weights' norms."""
    model = compiled(strategy)
    history = model.fit(*data, verbose=0, **options).history
    return [float(one) for several in history.values() for one in several] + norms(model)


def norms(model: Any) -> list[float]:
    return [float(np.linalg.norm(weight)) for weight in model.get_weights()]


# TensorFlow's accuracies and losses of two epochs, those of the validation, and the weights' norms.
RECORDED = [
    0.375,
    0.416667,
    2.740602,
    1.637225,
    0.395833,
    0.479167,
    1.860026,
    1.272557,
    2.063593,
    0.804965,
    4.864615,
    0.733707,
]

TRAININGS: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "dataset": lambda: ((batches(),), {"epochs": 2, "validation_data": batches(8)}),
    "endless": lambda: ((batches().repeat(),), {"epochs": 2, "steps_per_epoch": 2}),
    "uneven": lambda: ((batches(16).take(2),), {}),
    "weighted": lambda: ((batches(),), {"class_weight": {0: 1.0, 1: 2.0, 2: 0.5}}),
    "arrays": lambda: ((X, Y), {"batch_size": 16, "shuffle": False, "validation_split": 0.25}),
}


@pytest.mark.parametrize("name", TRAININGS)
@pytest.mark.parametrize("replicas", [2, 4])
def test_replicas_train_as_one(name: str, replicas: int) -> None:
    data, options = TRAININGS[name]()
    wanted, found = (fitted(mirrored(size), data, **options) for size in (1, replicas))
    assert found == pytest.approx(wanted, rel=1e-5, abs=1e-5)


def test_training_has_the_numbers_of_tensorflow() -> None:
    found = fitted(mirrored(2), (batches(),), epochs=2, validation_data=batches(8))
    assert found == pytest.approx(RECORDED, abs=1e-5)


def test_workers_train_as_one() -> None:
    def worker() -> list[float]:
        return fitted(tf.distribute.MultiWorkerMirroredStrategy(), (batches(),), epochs=2, validation_data=batches(8))

    for found in collshim.launch(worker, 2, timeout=200):
        assert found == pytest.approx(RECORDED, abs=1e-5)


def test_workers_shuffle_arrays_alike() -> None:
    def worker() -> list[float]:
        return fitted(tf.distribute.MultiWorkerMirroredStrategy(), (X, Y), batch_size=16)

    first, second = collshim.launch(worker, 2, timeout=200)
    assert first == second


def test_predictions_and_evaluations_are_of_all_rows() -> None:
    one, two = (compiled(mirrored(size)) for size in (1, 2))
    assert np.allclose(one.predict(batches(10), verbose=0), two.predict(batches(10), verbose=0), atol=1e-6)
    assert np.allclose(one.predict(X, verbose=0), two.predict(X, verbose=0), atol=1e-6)
    assert one.evaluate(batches(), verbose=0) == pytest.approx(two.evaluate(batches(), verbose=0), abs=1e-6)
    assert one.evaluate(X, Y, verbose=0) == pytest.approx(two.evaluate(X, Y, verbose=0), abs=1e-6)
    assert one.train_on_batch(X, Y) == pytest.approx(two.train_on_batch(X, Y), abs=1e-6)
    assert norms(one) == pytest.approx(norms(two), abs=1e-5)


def test_distributed_dataset_is_taken_as_it_is() -> None:
    strategy = mirrored(2)
    wanted = fitted(strategy, (batches(),))
    assert fitted(strategy, (strategy.experimental_distribute_dataset(batches()),)) == pytest.approx(wanted)


def test_step_of_the_user_runs_in_each_replica() -> None:
    seen = []

    class Custom(tf.keras.Model):  # type: ignore[misc]
        def train_step(self, data: Any) -> Any:
            x, y = data
            seen.append(len(x))
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=y, y_pred=self(x, training=True))
            weights = self.trainable_variables
            self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
            return {"rows": tf.constant(float(len(x)))}

    strategy = mirrored(2)
    with strategy.scope():
        inputs = tf.keras.Input((6, 6, 1))
        model = Custom(inputs, tf.keras.layers.Dense(3)(tf.keras.layers.Flatten()(inputs)))
        model.compile(optimizer="sgd", loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    assert model.fit(batches(), verbose=0).history == {"rows": [8.0]}
    assert seen == [8] * 6


@pytest.mark.parametrize("replicas", [1, 2])
def test_unfit_data_is_refused(replicas: int) -> None:
    model = compiled(mirrored(replicas))
    with pytest.raises((ValueError, IndexError), match=r"batch it before|should have batches"):
        model.fit(batches().unbatch(), verbose=0)
    with pytest.raises(ValueError, match=r"`y` should not be passed"):
        model.fit(batches(), Y, verbose=0)
    with pytest.raises(ValueError, match=r"^When passing an infinitely repeating dataset, please specify a `steps_per"):
        model.fit(batches().repeat(), verbose=0)


def test_plain_model_takes_datasets_too() -> None:
    model = compiled(tf.distribute.OneDeviceStrategy("CPU:0"))
    model.fit(batches(), epochs=2, validation_data=batches(8), verbose=0)
    assert norms(model) == pytest.approx(RECORDED[-4:], abs=1e-5)


def train_and_save(strategy: Any, folder: Path) -> list[Any]:
    model, callbacks = compiled(strategy), tf.keras.callbacks
    kept = [
        callbacks.ModelCheckpoint(folder / "{epoch}.weights.h5", save_weights_only=True),
        callbacks.ModelCheckpoint(folder / "whole.keras"),
        callbacks.BackupAndRestore(folder / "backup"),
    ]
    model.fit(batches(), epochs=2, verbose=0, callbacks=kept)
    wanted = model.evaluate(batches(), verbose=0)
    again = compiled(strategy)
    with strategy.scope():
        again.optimizer.build(again.trainable_variables)
        again.load_weights(folder / "2.weights.h5")
        whole = tf.keras.models.load_model(folder / "whole.keras")
    return [wanted, again.evaluate(batches(), verbose=0), whole.evaluate(batches(), verbose=0)]


def test_saved_models_are_as_they_were(tmp_path: Path) -> None:
    wanted, *found = train_and_save(mirrored(2), tmp_path)
    assert found == [pytest.approx(wanted, abs=1e-6)] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.weights.h5", "2.weights.h5", "whole.keras"]


def test_workers_save_to_one_path(tmp_path: Path) -> None:
    def worker() -> list[Any]:
        return train_and_save(tf.distribute.MultiWorkerMirroredStrategy(), tmp_path)

    for wanted, *found in collshim.launch(worker, 2, timeout=200):
        assert found == [pytest.approx(wanted, abs=1e-6)] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1.weights.h5", "2.weights.h5", "whole.keras"]


def test_folder_that_another_worker_makes_meanwhile_is_taken(tmp_path: Path) -> None:
    assert tf.keras.callbacks.BackupAndRestore  # imports Keras
    from keras.src.utils import file_utils

    for _ in range(2):
        file_utils.makedirs(tmp_path / "backup")
    (tmp_path / "file").touch()
    with pytest.raises(FileExistsError):
        file_utils.makedirs(tmp_path / "file")


def test_formats_of_tensorflow_alone_are_refused(tmp_path: Path) -> None:
    model = compiled(mirrored(1))
    with pytest.raises(NotImplementedError, match=r"^model.export: the format 'tf_saved_model' exists only"):
        model.export(tmp_path / "exported")
    with pytest.raises(NotImplementedError, match=r"^TensorBoard: write_images is True, should be left out"):
        tf.keras.callbacks.TensorBoard(tmp_path, write_images=True)


def test_tensorboard_gets_the_numbers_of_each_epoch(tmp_path: Path) -> None:
    accumulator: Any = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    board = tf.keras.callbacks.TensorBoard(tmp_path, histogram_freq=1)
    history = (
        compiled(mirrored(2)).fit(batches(), epochs=2, validation_data=batches(8), verbose=0, callbacks=[board]).history
    )
    for folder, name in (("train", "loss"), ("validation", "val_loss")):
        events = accumulator.EventAccumulator(str(tmp_path / folder)).Reload()
        values = [event.tensor_proto.float_val[0] for event in events.Tensors("epoch_loss")]
        assert values == pytest.approx(history[name])


def test_tensorboard_is_refused_without_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(
        ImportError, match=r"^tf\.summary writes by the package tensorboard, .* pip install tensorboard"
    ):
        tf.summary.create_file_writer(tmp_path)
