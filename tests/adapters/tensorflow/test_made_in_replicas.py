"""Variables that replicas make: the first one makes them, and the others get the same, without waiting for each other.

Source of the expected values: TensorFlow 2.21, under ``MirroredStrategy`` on two and three CPUs.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored, replica

KERAS = pytest.mark.skipif(find_spec("keras") is None, reason="Keras is not installed: pip install collshim[keras]")


def sums(variable: Any) -> list[float]:
    return [float(own) for own in variable.values]


@pytest.fixture(params=[2, 3])
def strategy(request: pytest.FixtureRequest) -> Any:
    """A strategy with several replicas."""
    return mirrored(request.param)


def test_a_list_that_is_filled_once_has_each_variable_once(strategy: Any) -> None:
    made: list[Any] = []

    def step() -> None:
        if not made:
            made.extend([tf.Variable(1.0), tf.Variable(2.0)])
        made[0].assign_add(1.0)

    strategy.run(step)
    strategy.run(tf.function(step))
    assert len(made) == 2
    assert sums(made[0]) == [3.0] * strategy.num_replicas_in_sync


def test_each_replica_adds_to_its_own_copy(strategy: Any) -> None:
    made: list[Any] = []

    def step() -> None:
        if not made:
            made.append(
                tf.Variable(
                    0.0,
                    synchronization=tf.VariableSynchronization.ON_READ,
                    aggregation=tf.VariableAggregation.SUM,
                )
            )
        made[0].assign_add(1.0 + replica())

    strategy.run(step)
    strategy.run(step)
    assert len(made) == 1
    assert sums(made[0]) == [2.0, 4.0, 6.0][: strategy.num_replicas_in_sync]


def test_the_first_replica_may_make_more(strategy: Any) -> None:
    made: list[list[Any]] = []
    strategy.run(lambda: made.append([tf.Variable(float(place)) for place in range(3 - replica())]))
    assert [len(several) for several in made] == [3, 2, 1][: strategy.num_replicas_in_sync]
    for several in made:
        assert all(own is first for own, first in zip(several, made[0], strict=False))


def test_the_first_replica_must_make_every_variable(strategy: Any) -> None:
    with pytest.raises(RuntimeError, match=r"replica 1 makes the variable number 2 .* replica 0 has made 1 of them"):
        strategy.run(lambda: [tf.Variable(1.0) for _ in range(replica() + 1)] and None)


def test_names_determine_which_variables_correspond(strategy: Any) -> None:
    made: list[tuple[Any, Any]] = []

    def step() -> None:
        if replica() == 0:
            first, second = tf.Variable(1.0, name="a"), tf.Variable(2.0, name="b")
        else:
            second, first = tf.Variable(3.0, name="b_1"), tf.Variable(4.0, name="a")
        made.append((first, second))

    strategy.run(step)
    for first, second in made:
        assert (first, second) == made[0] or (first is made[0][0] and second is made[0][1])
    assert (sums(made[0][0])[0], sums(made[0][1])[0]) == (1.0, 2.0)


def test_a_replica_goes_on_after_it_has_made_a_variable() -> None:
    told: list[tuple[str, int]] = []

    def step() -> None:
        told.append(("before", replica()))
        tf.Variable(1.0)
        told.append(("after", replica()))
        tf.distribute.get_replica_context().all_reduce("SUM", tf.constant(1.0))
        told.append(("reduced", replica()))

    mirrored(2).run(step)
    assert told == [(word, number) for number in (0, 1) for word in ("before", "after")] + [
        ("reduced", 0),
        ("reduced", 1),
    ]


def test_the_initial_value_is_the_first_replicas() -> None:
    called: list[int] = []
    made: list[Any] = []

    def initial() -> float:
        called.append(replica())
        return 1.0

    def step() -> None:
        made.append((tf.Variable(float(replica())), tf.Variable(initial)))

    mirrored(2).run(step)
    assert called == [0]
    assert [sums(made[1][0]), sums(made[1][1])] == [[0.0, 0.0], [1.0, 1.0]]


@KERAS
@pytest.mark.parametrize("size", [0, 1, 2])
@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_an_optimizer_is_built_on_variables_of_tensorflow(name: str, size: int) -> None:
    strategy = mirrored(size) if size else tf.distribute.get_strategy()
    with strategy.scope():
        variable = tf.Variable([4.0, 3.0])
        optimizer = getattr(tf.keras.optimizers, name)(1.0)
        optimizer.build([variable])
    gradient = tf.constant([1.0, 0.5])
    strategy.run(lambda: optimizer.apply_gradients([(gradient * (1.0 + replica()), variable)]))
    total = {0: 1.0, 1: 1.0, 2: 3.0}[size]
    wanted = [4.0 - total, 3.0 - 0.5 * total] if name == "SGD" else [3.0, 2.0]
    assert variable.numpy().tolist() == pytest.approx(wanted, abs=1e-4)
