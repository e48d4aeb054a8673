"""``tf.train.Checkpoint`` and its manager; texts and names are those of TensorFlow 2.21 on a CPU."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored

pytestmark = pytest.mark.threads

KERAS = pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed: pip install collshim[keras]")
Checkpoint = tf.train.Checkpoint


class Parts(tf.Module):
    """A module with variables in an attribute, a list and a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable([1.0, 2.0])
        self.several = [tf.Variable(5.0), tf.Variable(6, dtype=tf.int64)]
        self.named = {"a": tf.Variable(7.0, dtype=tf.bfloat16)}


def test_values_come_back(tmp_path: Path) -> None:
    value, parts = tf.Variable(1.0), Parts()
    checkpoint = Checkpoint(value=value, parts=parts)
    prefix = checkpoint.write(tmp_path / "folder" / "x")
    for variable in (value, parts.named["a"], *parts.several):
        variable.assign(tf.zeros_like(variable))
    parts.weight.assign([0.0, 0.0])
    checkpoint.read(prefix).assert_consumed().assert_nontrivial_match().expect_partial()
    assert (float(value), float(parts.named["a"]), *map(int, parts.several)) == (1.0, 7.0, 5, 6)
    assert parts.weight.numpy().tolist() == [1.0, 2.0]
    assert tf.train.list_variables(prefix) == [
        ("parts/named/a/.ATTRIBUTES/VARIABLE_VALUE", []),
        ("parts/several/0/.ATTRIBUTES/VARIABLE_VALUE", []),
        ("parts/several/1/.ATTRIBUTES/VARIABLE_VALUE", []),
        ("parts/weight/.ATTRIBUTES/VARIABLE_VALUE", [2]),
        ("value/.ATTRIBUTES/VARIABLE_VALUE", []),
    ]
    assert tf.train.load_variable(prefix, "value/.ATTRIBUTES/VARIABLE_VALUE") == 1.0


def test_saves_are_counted_and_the_latest_is_found(tmp_path: Path) -> None:
    value = tf.Variable(1.0)
    checkpoint = Checkpoint(value=value)
    assert tf.train.latest_checkpoint(tmp_path) is None
    first = checkpoint.save(tmp_path / "x")
    value.assign(2.0)
    second = checkpoint.save(tmp_path / "x")
    assert (first, second) == (f"{tmp_path}/x-1", f"{tmp_path}/x-2")
    assert (tmp_path / "checkpoint").read_text() == (
        'model_checkpoint_path: "x-2"\nall_model_checkpoint_paths: "x-2"\n'
    )
    assert tf.train.latest_checkpoint(str(tmp_path)) == second
    state = tf.train.get_checkpoint_state(tmp_path)
    assert state is not None
    assert state.all_model_checkpoint_paths == [second]
    assert sorted(path.name for path in tmp_path.glob("x-2*")) == ["x-2.data-00000-of-00001", "x-2.index"]
    checkpoint.restore(first).assert_consumed()
    assert (float(value), int(checkpoint.save_counter)) == (1.0, 1)


def test_status_says_what_does_not_match(tmp_path: Path) -> None:
    prefix = Checkpoint(value=tf.Variable(1.0), step=tf.Variable(3)).save(tmp_path / "x")
    less = Checkpoint(value=tf.Variable(0.0)).restore(prefix)
    less.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match=r"^Unresolved object in checkpoint \(root\).step: "):
        less.assert_consumed()
    more = Checkpoint(value=tf.Variable(0.0), extra=tf.Variable(1.0)).restore(prefix)
    with pytest.raises(AssertionError, match=r"^Found 1 Python objects .* Showing 1 of 1 unmatched objects: \[<tf.Var"):
        more.assert_existing_objects_matched()
    with pytest.raises(AssertionError, match=r"^Nothing to load"):
        Checkpoint(other=tf.Variable(0.0)).read(prefix).assert_nontrivial_match()
    with pytest.raises(AssertionError, match=r"^No checkpoint specified \(save_path=None\); nothing is being restored"):
        Checkpoint().restore(tf.train.latest_checkpoint(tmp_path / "nothing")).assert_consumed()


def test_variable_made_after_the_restoration_takes_its_value(tmp_path: Path) -> None:
    prefix = Checkpoint(value=tf.Variable(1.0)).save(tmp_path / "x")
    checkpoint: Any = Checkpoint()
    checkpoint.restore(prefix)
    checkpoint.value = tf.Variable(9.0)
    assert float(checkpoint.value) == 1.0


def test_object_with_two_names_is_saved_once(tmp_path: Path) -> None:
    value = tf.Variable(4.0)
    prefix = Checkpoint(one=[value], two={"a": value}, root=[value]).write(tmp_path / "x")
    assert len(tf.train.list_variables(prefix)) == 1
    other = tf.Variable(0.0)
    Checkpoint(two={"a": other}).read(prefix).assert_consumed()
    assert float(other) == 4.0


def test_unfit_values_files_and_objects_are_refused(tmp_path: Path) -> None:
    prefix = Checkpoint(value=tf.Variable(1.0)).save(tmp_path / "x")
    with pytest.raises(
        ValueError, match=r"^Received incompatible tensor with shape \(\) when attempting to restore va"
    ):
        Checkpoint(value=tf.Variable([0.0, 1.0])).restore(prefix)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="expected dtype int32 does not equal original dtype float"
    ):
        Checkpoint(value=tf.Variable(1)).restore(prefix)
    with pytest.raises(tf.errors.NotFoundError, match="Failed to find any matching files for nothing"):
        Checkpoint().restore("nothing")
    with pytest.raises(tf.errors.NotFoundError, match=r"^Key value not found in checkpoint$"):
        tf.train.load_variable(prefix, "value")
    (tmp_path / "real.index").write_bytes(b"\x00\x00\x08\x80model/...\xff")
    with pytest.raises(ValueError, match=r"only checkpoints that were saved by collshim.tensorflow are read") as said:
        Checkpoint().restore(tmp_path / "real")
    assert isinstance(said.value, tf.errors.DataLossError)
    for wrong in (3, "x", tf.constant(1.0), lambda: 1):
        with pytest.raises(ValueError, match=r"^`Checkpoint` was expecting a to be a trackable object"):
            Checkpoint(a=wrong)
    with pytest.raises(ValueError, match="experimental_skip_slot_variables is True, which is not covered"):
        tf.train.CheckpointOptions(experimental_skip_slot_variables=True)


def test_manager_keeps_the_latest(tmp_path: Path) -> None:
    value = tf.Variable(0.0)
    checkpoint = Checkpoint(value=value)
    manager = tf.train.CheckpointManager(checkpoint, tmp_path / "m", max_to_keep=2)
    assert (manager.latest_checkpoint, manager.checkpoints, manager.restore_or_initialize()) == (None, [], None)
    for number in range(4):
        value.assign(float(number))
        manager.save()
    kept = [f"{tmp_path}/m/ckpt-3", f"{tmp_path}/m/ckpt-4"]
    assert manager.checkpoints == kept
    assert manager.save(checkpoint_number=77) == f"{tmp_path}/m/ckpt-77" == tf.train.latest_checkpoint(tmp_path / "m")
    assert len(list((tmp_path / "m").iterdir())) == 5
    again = tf.train.CheckpointManager(Checkpoint(value=value), tmp_path / "m", max_to_keep=2)
    assert again.checkpoints == [kept[1], f"{tmp_path}/m/ckpt-77"]
    value.assign(9.0)
    assert again.restore_or_initialize() == f"{tmp_path}/m/ckpt-77"
    assert float(value) == 3.0


def test_manager_waits_for_its_interval(tmp_path: Path) -> None:
    step = tf.Variable(0)
    manager = tf.train.CheckpointManager(
        Checkpoint(step=step), tmp_path, max_to_keep=None, step_counter=step, checkpoint_interval=2
    )
    saved = []
    for _ in range(5):
        saved.append(manager.save() is not None)
        step.assign_add(1)
    assert saved == [True, False, True, False, True]
    assert [manager.save(check_interval=False) is not None for _ in range(2)] == [True, False]  # this step was saved
    manager.sync()
    manager.checkpoint.sync()
    with pytest.raises(ValueError, match=r"^Expected a positive integer or `None` for `max_to_keep`, got 0.$"):
        tf.train.CheckpointManager(Checkpoint(), tmp_path, max_to_keep=0)
    with pytest.raises(ValueError, match=r"^`step_counter` should be passed if"):
        tf.train.CheckpointManager(Checkpoint(), tmp_path, max_to_keep=1, checkpoint_interval=2)


def test_later_checkpoints_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tf.train, "_POLL", 0.01)
    saved = Checkpoint(value=tf.Variable(1.0))
    found: list[str] = []
    assert not list(tf.train.checkpoints_iterator(tmp_path, timeout=0.0))
    saved.save(tmp_path / "ckpt")
    for prefix in tf.train.checkpoints_iterator(tmp_path, min_interval_secs=0.01, timeout=0.05):
        found.append(Path(prefix).name)
        if len(found) < 3:
            saved.save(tmp_path / "ckpt")
    assert found == ["ckpt-1", "ckpt-2", "ckpt-3"]
    answers = iter([False, True])
    again = tf.train.checkpoints_iterator(tmp_path, timeout=0.0, timeout_fn=lambda: next(answers))
    assert [Path(prefix).name for prefix in again] == ["ckpt-3"]
    assert not list(answers)


def modes(strategy: Any) -> list[Any]:
    aggregation, on_read = tf.VariableAggregation, tf.VariableSynchronization.ON_READ
    with strategy.scope():
        return [
            tf.Variable(2.0),
            tf.Variable(2.0, aggregation=aggregation.SUM, synchronization=on_read),
            tf.Variable(2.0, aggregation=aggregation.MEAN, synchronization=on_read),
        ]


@pytest.mark.parametrize("replicas", [1, 2, 4])
def test_variables_of_a_strategy_are_saved_once(replicas: int, tmp_path: Path) -> None:
    variables = modes(mirrored(replicas))
    prefix = Checkpoint(variables=variables).write(tmp_path / "x")
    found = [float(variable) for variable in variables]
    assert [shape for _, shape in tf.train.list_variables(prefix)] == [[], [], []]
    for other in (mirrored(1), mirrored(2)):
        restored = modes(other)
        Checkpoint(variables=restored).read(prefix).assert_consumed()
        assert [float(variable) for variable in restored] == found
        seen = other.run(lambda: restored[0] + 0.0)  # noqa: B023
        assert [float(one) for one in other.experimental_local_results(seen)] == [2.0] * other.num_replicas_in_sync


def test_workers_save_to_their_own_paths_and_restore_the_chiefs(tmp_path: Path) -> None:
    def worker() -> list[float]:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        rank = collshim.current().rank
        variables = modes(strategy)
        strategy.run(lambda: variables[1].assign(float(rank + 1)))
        checkpoint = Checkpoint(variables=variables)
        checkpoint.write(tmp_path / ("x" if rank == 0 else f"temporary/{rank}"))
        collshim.current().communicator.barrier().wait()
        strategy.run(lambda: variables[1].assign(50.0))
        checkpoint.read(tmp_path / "x").assert_consumed()
        return [float(variable) for variable in variables]

    assert collshim.launch(worker, 2, timeout=200) == [[2.0, 3.0, 2.0]] * 2


def network(strategy: Any, built: bool) -> tuple[Any, Any]:
    layers = tf.keras.layers
    with strategy.scope():
        model = tf.keras.Sequential(
            [*([tf.keras.Input((2,))] if built else []), layers.Dense(3), layers.BatchNormalization(), layers.Dense(1)]
        )
        return model, tf.keras.optimizers.Adam(0.1)


def trained(strategy: Any, model: Any, optimizer: Any, steps: int) -> list[Any]:
    def step() -> None:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.square(model(tf.constant([[1.0, 2.0], [3.0, 5.0]]), training=True)))
        optimizer.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
        )

    for _ in range(steps):
        strategy.run(step)
    return [weight.numpy() for weight in model.weights]


@KERAS
@pytest.mark.parametrize("built", [False, True])
@pytest.mark.parametrize("replicas", [1, 2])
def test_training_goes_on_where_it_was_saved(replicas: int, built: bool, tmp_path: Path) -> None:
    strategy = mirrored(replicas)
    model, optimizer = network(strategy, built)
    trained(strategy, model, optimizer, 2)
    prefix = Checkpoint(model=model, optimizer=optimizer).save(tmp_path / "x")
    wanted = trained(strategy, model, optimizer, 2)
    model, optimizer = network(strategy, built)
    status = Checkpoint(model=model, optimizer=optimizer).restore(prefix)
    found = trained(strategy, model, optimizer, 2)
    status.assert_consumed()
    assert int(optimizer.iterations) == 4
    for one, another in zip(found, wanted, strict=True):
        assert np.allclose(one, another, atol=1e-6)


@pytest.mark.parametrize("folder", ["./d", "d", "./d/"])
def test_paths_begin_with_the_folder_as_it_is_written(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(value=tf.Variable(1.0)), folder, max_to_keep=1)
    saved = os.path.join(folder, "ckpt-1")
    assert (manager.save(), manager.checkpoints, tf.train.latest_checkpoint(folder)) == (saved, [saved], saved)
