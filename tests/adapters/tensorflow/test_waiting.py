"""Variables that are created after ``tf.train.Checkpoint.restore`` have the saved values at once, as on TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored


class Holder(tf.Module):
    """A module whose attributes are set from outside."""

    held: Any


def new() -> Any:
    return tf.Variable([1.0, 2.0])


def in_attribute(holder: Holder) -> Any:
    holder.held = new()
    return holder.held


def in_attribute_after_none(holder: Holder) -> Any:
    holder.held = None
    return in_attribute(holder)


def in_attribute_after_assignment(holder: Holder) -> Any:
    variable = new()
    variable.assign([7.0, 7.0])
    holder.held = variable
    return variable


def in_list(holder: Holder) -> Any:
    holder.held = [new()]
    return holder.held[0]


def in_tuple(holder: Holder) -> Any:
    holder.held = (new(),)
    return holder.held[0]


def in_dict(holder: Holder) -> Any:
    holder.held = {"a": new()}
    return holder.held["a"]


def in_list_later(holder: Holder) -> Any:
    holder.held = []
    holder.held.append(new())
    return holder.held[0]


def in_dict_later(holder: Holder) -> Any:
    holder.held = {}
    holder.held["a"] = new()
    return holder.held["a"]


def in_module(holder: Holder) -> Any:
    holder.held = Holder()
    return in_attribute(holder.held)


def in_module_set_last(holder: Holder) -> Any:
    below = Holder()
    variable = in_attribute(below)
    holder.held = below
    return variable


def in_module_in_list(holder: Holder) -> Any:
    holder.held = [Holder()]
    return in_attribute(holder.held[0])


PLACES = [
    *(in_attribute, in_attribute_after_none, in_attribute_after_assignment, in_list, in_tuple, in_dict),
    *(in_list_later, in_dict_later, in_module, in_module_set_last, in_module_in_list),
]


@pytest.mark.parametrize("replicas", [0, 1, 2])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
def test_a_variable_has_its_saved_value_at_once(tmp_path: Path, place: Callable[[Holder], Any], replicas: int) -> None:
    saved, restored = Holder(), Holder()
    place(saved).assign([10.0, 20.0])
    prefix = tf.train.Checkpoint(model=saved).write(tmp_path / "saved")
    status = tf.train.Checkpoint(model=restored).read(prefix)
    strategy = mirrored(replicas) if replicas else tf.distribute.get_strategy()
    with strategy.scope():
        variable = place(restored)
        assert variable.numpy().tolist() == [10.0, 20.0]
        variable.assign_add([1.0, 1.0])
    status.assert_consumed()
    assert variable.numpy().tolist() == [11.0, 21.0]
    for own in strategy.experimental_local_results(strategy.run(variable.read_value)):
        assert own.numpy().tolist() == [11.0, 21.0]


def test_a_variable_of_the_replicas_is_restored_before_they_update_it(tmp_path: Path) -> None:
    saved, restored = Holder(), Holder()
    in_attribute(saved).assign([10.0, 20.0])
    prefix = tf.train.Checkpoint(model=saved).write(tmp_path / "saved")
    tf.train.Checkpoint(model=restored).read(prefix)

    def step() -> Any:
        if not hasattr(restored, "held"):
            restored.held = tf.Variable([1.0, 2.0], aggregation=tf.VariableAggregation.MEAN)
        return restored.held.assign_add([1.0, 1.0])

    mirrored(2).run(step)
    assert restored.held.numpy().tolist() == [11.0, 21.0]


def test_each_rank_restores_its_own_model(tmp_path: Path) -> None:
    saved = Holder()
    in_attribute(saved).assign([10.0, 20.0])
    prefix = tf.train.Checkpoint(model=saved).write(tmp_path / "saved")

    def restore() -> list[float]:
        model = Holder()
        tf.train.Checkpoint(model=model).read(prefix)
        variable = in_attribute(model)
        variable.assign_add([1.0, 1.0])
        found: list[float] = variable.numpy().tolist()
        return found

    assert collshim.launch(restore, 4) == [[11.0, 21.0]] * 4


def test_other_values_do_not_restore_anything(tmp_path: Path) -> None:
    saved, restored = Holder(), Holder()
    in_attribute(saved)
    prefix = tf.train.Checkpoint(model=saved).write(tmp_path / "saved")
    status = tf.train.Checkpoint(model=restored).read(prefix)
    restored.step = 3
    with pytest.raises(AssertionError, match=r"Unresolved object in checkpoint \(root\)\.model\.held"):
        status.assert_consumed()
    with pytest.raises(AttributeError, match="'Variable' object has no attribute 'absent'"):
        new().absent  # noqa: B018


def test_the_latest_restoration_counts(tmp_path: Path) -> None:
    model = Holder()
    checkpoint = tf.train.Checkpoint(model=model)
    for number in (1.0, 2.0):
        saved = Holder()
        saved.held = tf.Variable(number)
        checkpoint.read(tf.train.Checkpoint(model=saved).write(tmp_path / str(number)))
    model.held = tf.Variable(0.0)
    assert float(model.held) == 2.0


def test_a_variable_that_replaces_a_restored_one_has_no_value(tmp_path: Path) -> None:
    saved, restored = Holder(), Holder()
    in_attribute(saved)
    status = tf.train.Checkpoint(model=restored).read(tf.train.Checkpoint(model=saved).write(tmp_path / "saved"))
    in_attribute(restored)
    restored.held = tf.Variable([3.0, 4.0])
    assert restored.held.numpy().tolist() == [3.0, 4.0]
    with pytest.raises(AssertionError, match="Found 1 Python objects that were not bound to checkpointed values"):
        status.assert_consumed()
    assert restored.held.numpy().tolist() == [3.0, 4.0]


def test_older_methods_of_a_status_do_nothing(tmp_path: Path) -> None:
    variable = tf.Variable(1.0)
    checkpoint = tf.train.Checkpoint(variable=variable)
    status = checkpoint.read(checkpoint.write(tmp_path / "saved"))
    variable.assign(2.0)
    status.initialize_or_restore()
    status.run_restore_ops()
    checkpoint.restore(None).initialize_or_restore()
    assert float(variable) == 2.0
    with pytest.raises(AssertionError, match="No checkpoint specified"):
        checkpoint.restore(None).run_restore_ops()


def test_generators_of_random_numbers_are_saved(tmp_path: Path) -> None:
    saved, restored = tf.random.Generator.from_seed(3), tf.random.Generator.from_seed(7)
    saved.normal([2])
    prefix = tf.train.Checkpoint(generator=saved).write(tmp_path / "saved")
    assert ("generator/_state_var/.ATTRIBUTES/VARIABLE_VALUE", [3]) in tf.train.list_variables(prefix)
    tf.train.Checkpoint(generator=restored).read(prefix).assert_consumed()
    assert restored.state.numpy().tolist() == [515, 0, 0]
    assert (restored.normal([2]).numpy() == saved.normal([2]).numpy()).all()
