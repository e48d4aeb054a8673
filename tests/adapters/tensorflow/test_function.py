"""``tf.function`` runs the decorated function; replicas do not synchronize in a nested one, as in TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import Run, context, mirrored


def total() -> Any:
    return context().all_reduce("SUM", tf.constant(1.0))


@pytest.mark.parametrize("decorate", [tf.function, tf.function(jit_compile=True)])
def test_function_given_to_run_may_synchronize(run_two: Run, decorate: Any) -> None:
    assert [float(one) for one in run_two(decorate(total))] == [2.0, 2.0]


def test_method_given_to_run_may_synchronize() -> None:
    class Model:
        @tf.function
        def step(self) -> Any:
            return total()

    assert [float(one) for one in mirrored(2).run(Model().step).values] == [2.0, 2.0]


def test_run_inside_a_function_may_synchronize() -> None:
    strategy = mirrored(2)
    found = tf.function(lambda: strategy.run(total))()
    assert [float(one) for one in found.values] == [2.0, 2.0]


@pytest.mark.parametrize(
    "synchronize",
    [total, lambda: context().merge_call(lambda strategy: None), lambda: context().all_gather(tf.constant([1.0]), 0)],
)
def test_nested_function_must_not_synchronize(run_two: Run, synchronize: Any) -> None:
    with pytest.raises(RuntimeError, match=r"`merge_call` called while defining a new graph or a tf\.function"):
        run_two(lambda: tf.function(synchronize)())


def test_replicas_can_synchronize_after_a_nested_function(run_two: Run) -> None:
    doubled: Any = tf.function(lambda x: x * 2)
    found = run_two(lambda: context().all_reduce("SUM", doubled(tf.constant(1.0))))
    assert [float(one) for one in found] == [4.0, 4.0]


def test_function_outside_strategies_may_synchronize() -> None:
    assert float(tf.function(total)()) == 1.0


def test_function_keeps_python_function_and_name() -> None:
    decorated: Any = tf.function(total)
    assert (decorated.python_function is total, decorated.__name__) == (True, "total")


def test_method_binds_its_object_and_keeps_structures() -> None:
    class Held(dict[str, Any]):
        @tf.function
        def same(self, given: Any, other: Any) -> Any:
            return self is held and given is other

    held, given = Held(array=np.ones(1)), [None, {"x": 1}]
    assert bool(held.same(given, given))
    returned: Any = {"x": None}
    assert tf.function(lambda: returned)() is returned


def test_array_arguments_become_tensors() -> None:
    kinds: Any = tf.function(lambda parts, more: [type(part).__name__ for part in (*parts, more)])
    assert kinds([np.ones(2), 1], more=np.ones(2)) == ["Tensor", "int", "Tensor"]


ONLY_ONCE = r"tf\.function only supports singleton tf\.Variables created on the first call"


def test_a_variable_of_each_call_is_refused() -> None:
    decorated: Any = tf.function(lambda x: tf.Variable(1.0) + x)
    with pytest.raises(ValueError, match=ONLY_ONCE):
        decorated(1.0)


def test_only_the_first_call_may_create_a_variable() -> None:
    kept: list[Any] = []

    class Model(tf.Module):
        @tf.function
        def grow(self) -> Any:
            kept.append(tf.Variable(1.0))

        @tf.function
        def weight(self) -> Any:
            if not hasattr(self, "value"):
                self.value = tf.Variable(2.0)
            return self.value

    models = Model(), Model()
    for model in models:
        assert [float(model.weight()) for _ in range(2)] == [2.0, 2.0]
        model.grow()
        with pytest.raises(ValueError, match=ONLY_ONCE):
            model.grow()


def test_replicas_share_the_variable_of_the_first_call() -> None:
    kept: list[Any] = []
    grow: Any = tf.function(lambda: kept.append(tf.Variable(1.0)))
    strategy = mirrored(2)
    strategy.run(grow)
    assert kept[0] is kept[1]
    with pytest.raises(ValueError, match=ONLY_ONCE):
        strategy.run(grow)


def test_init_scope_creates_variables_in_every_call() -> None:
    def created() -> Any:
        with tf.init_scope():
            return tf.Variable(1.0)

    decorated: Any = tf.function(lambda: float(created()))
    assert [float(decorated()) for _ in range(2)] == [1.0, 1.0]
