"""``tf.GradientTape`` matches TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import context, mirrored, replica


def test_watched_tensor_has_a_gradient() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(x * x)
    assert tape.gradient(y, x).numpy().tolist() == [2.0, 4.0]


def test_second_gradient_needs_a_persistent_tape() -> None:
    x = tf.Variable(2.0)
    with tf.GradientTape(persistent=True) as kept, tf.GradientTape() as tape:
        y = x * x
    assert [float(kept.gradient(y, x)), float(kept.gradient(y, x)), float(tape.gradient(y, x))] == [4.0] * 3
    with pytest.raises(RuntimeError, match="A non-persistent GradientTape can only be used"):
        tape.gradient(y, x)


def test_unwatched_tensor_has_no_gradient() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    assert tape.gradient(y, x) is None


def test_unconnected_gradient_can_be_zeros() -> None:
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.Variable(1.0) * 2
    assert tape.gradient(y, [x], unconnected_gradients="zero")[0].numpy().tolist() == [0.0, 0.0]


def test_variables_are_watched_when_read() -> None:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = x * x
    assert [id(variable) for variable in tape.watched_variables()] == [id(x)]
    assert tape.gradient(y, {"a": x})["a"].numpy().tolist() == [2.0, 4.0]


def test_variables_can_be_left_unwatched() -> None:
    x = tf.Variable(2.0)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        y = x * x
    assert tape.gradient(y, x) is None


def test_nothing_is_recorded_outside_tapes() -> None:
    assert (tf.Variable(2.0) * 2).requires_grad is False


def test_value_read_before_an_assignment_has_its_gradient() -> None:
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * x
        x.assign(5.0)
        z = y * x
    assert float(tape.gradient(z, x)) == 5.0 * 4.0 + 4.0


def test_second_order_gradients() -> None:
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = x * x * x
        slope = inner.gradient(y, x)
    assert float(outer.gradient(slope, x)) == 18.0


def test_recording_can_be_stopped() -> None:
    x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        with tape.stop_recording():
            constant = x * x
        y = x * constant
    assert float(tape.gradient(y, x)) == 9.0


def test_output_gradients_weigh_the_targets() -> None:
    x = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * tf.constant([1.0, 3.0])
    assert float(tape.gradient(y, x, output_gradients=tf.constant([2.0, 5.0]))) == 17.0


def test_gradients_pass_through_collectives() -> None:
    strategy = mirrored(2)

    def step() -> Any:
        x = tf.identity(tf.constant([1.0, 2.0]))
        with tf.GradientTape() as tape:
            tape.watch(x)
            total = context().all_reduce("SUM", x)
            loss = tf.reduce_sum(total * total)
        return tape.gradient(loss, x)

    assert [part.numpy().tolist() for part in strategy.run(step).values] == [[8.0, 16.0]] * 2


def test_tape_around_run_sees_variables_read_by_replicas() -> None:
    strategy = mirrored(2)
    with strategy.scope():
        x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = strategy.run(lambda: x * x)
    assert float(tape.gradient(y.values[0], x)) == 6.0


def test_tape_around_run_adds_the_gradients_of_all_copies() -> None:
    strategy = mirrored(2)
    with strategy.scope():
        x = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = strategy.reduce("SUM", strategy.run(lambda: x * x * (replica() + 1)), axis=None)
    assert float(tape.gradient(y, x)) == 18.0


def test_training_on_parts_matches_the_whole() -> None:
    def trained(size: int) -> float:
        strategy = mirrored(size)
        with strategy.scope():
            weight = tf.Variable(1.0)
        batch = tf.constant([1.0, 2.0, 3.0, 4.0])
        parts = tf.split(batch, size)

        def step(part: Any) -> None:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(weight * part - 2.0))
            weight.assign_sub(0.05 * context().all_reduce("MEAN", tape.gradient(loss, weight)))

        given = strategy.experimental_distribute_values_from_function(
            lambda place: parts[place.replica_id_in_sync_group]
        )
        for _ in range(3):
            strategy.run(step, (given,))
        return float(weight)

    assert trained(2) == pytest.approx(trained(1), abs=1e-6)


def times(variable: Any, gradient: Any) -> Any:
    """Return a function that multiplies by a variable, with the gradients that ``gradient`` returns."""

    @tf.custom_gradient
    def call(x: Any) -> Any:
        return x * x * variable, gradient

    return call


def test_a_custom_gradient_has_gradients_of_the_variables_that_it_reads() -> None:
    strategy = mirrored(2)
    with strategy.scope():
        factor = tf.Variable(2.0)

    def step() -> Any:
        x = tf.constant(replica() + 1.0)
        multiply = times(factor, lambda upstream, variables: (upstream * x * factor * 3, [upstream * len(variables)]))
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = multiply(x)
            first = inner.gradient(y, [x, factor])
        return first, outer.gradient(first[0], factor)

    (of_x, of_factor), second = strategy.run(step)
    assert [[float(one) for one in part.values] for part in (of_x, of_factor, second)] == [[6, 12], [1, 1], [3, 6]]


def test_second_gradients_pass_through_a_custom_gradient() -> None:
    @tf.custom_gradient
    def square(x: Any) -> Any:
        return x * x, lambda upstream: upstream * x * 10

    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = square(x)
        first = inner.gradient(y, x)
    assert (float(first), float(outer.gradient(first, x))) == (30, 10)


def gradient_of(function: Any, x: Any) -> Any:
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    return tape.gradient(y, x)


@pytest.mark.parametrize(
    ("gradient", "kind", "said"),
    [
        (lambda upstream: upstream, TypeError, "must accept a 'variables' keyword argument"),
        (lambda upstream, variables: (upstream, []), ValueError, "0 gradients of variables were returned"),
        (
            lambda upstream, **more: ([upstream] * 2, [upstream]),
            ValueError,
            "2 gradients were returned, should be one for each of 1",
        ),
    ],
)
def test_a_custom_gradient_without_all_gradients_is_refused(gradient: Any, kind: type[Exception], said: str) -> None:
    x, multiply = tf.constant(1.0), times(tf.Variable(2.0), gradient)
    with pytest.raises(kind, match=said):
        gradient_of(multiply, x)
