"""Writes to rows of variables, and to a strategy's variables in replicas, match TensorFlow 2.21."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored, replica

Aggregation = tf.VariableAggregation
CHANGES: dict[str, tuple[list[list[float]], list[float]]] = {
    "sub": ([[-9.0, -8.0], [0.0, 1.0], [5.0, 6.0]], [-7.0, 2.0, 3.0, -4.0]),
    "add": ([[11.0, 12.0], [6.0, 7.0], [5.0, 6.0]], [9.0, 2.0, 3.0, 12.0]),
    "mul": ([[10.0, 20.0], [6.0, 8.0], [5.0, 6.0]], []),
    "div": ([[0.1, 0.2], [1.5, 2.0], [5.0, 6.0]], []),
    "min": ([[1.0, 2.0], [1.0, 1.0], [5.0, 6.0]], [1.0, 2.0, 3.0, 4.0]),
    "max": ([[10.0, 10.0], [3.0, 4.0], [5.0, 6.0]], [8.0, 2.0, 3.0, 8.0]),
    "update": ([[10.0, 10.0], [1.0, 1.0], [5.0, 6.0]], [8.0, 2.0, 3.0, 8.0]),
}


def slices(values: Any, indices: Any) -> tf.IndexedSlices:
    return tf.IndexedSlices(tf.constant(values), tf.constant(indices))


def whole() -> list[list[float]]:
    return [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


@pytest.mark.parametrize("change", CHANGES)
def test_variable_rows_are_written_per_index(change: str) -> None:
    x = tf.Variable(whole())
    rows = [[10.0, 10.0], [2.0 if change in ("sub", "add", "mul", "div") else 1.0] * 2, [1.0, 1.0]]
    assert getattr(x, f"scatter_{change}")(slices(rows, [0, 1, 1])) is x
    np.testing.assert_allclose(x.numpy(), CHANGES[change][0])


@pytest.mark.parametrize("change", [change for change, (_, found) in CHANGES.items() if found])
def test_variable_elements_are_written(change: str) -> None:
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    getattr(x, f"scatter_nd_{change}")([[0, 0], [1, 1]], [8.0, 8.0])
    assert x.numpy().ravel().tolist() == CHANGES[change][1]
    assert (x.gather_nd([[1, 0]]).numpy().tolist(), x.sparse_read([1]).numpy()[0, 0]) == ([3.0], 3.0)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda x: x.scatter_add(tf.constant([1.0])), TypeError, "must be a `tf.IndexedSlices`. Received arg: "),
        (lambda x: x.scatter_add(slices([[1.0, 1.0]], [7])), tf.errors.InvalidArgumentError, "7"),
        (lambda x: x.scatter_add(slices([[1, 1]], [0])), ValueError, "requested dtype float32 for Tensor with dtype"),
        (lambda x: {x}, TypeError, "Variable is unhashable. Instead, use variable.ref"),
        (lambda x: len(x), TypeError, "has no len()"),
    ],
)
def test_invalid_scatter_into_a_variable_is_refused(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call(tf.Variable(whole()))


@pytest.mark.parametrize(
    ("aggregation", "first", "second"),
    [
        ("NONE", [-1.0, -1.0, 5.0], [-2.0, -3.0, 5.0]),
        ("SUM", [-4.0, -7.0, 5.0], [-4.0, -7.0, 5.0]),
        ("MEAN", [-1.5, -2.0, 5.0], [-1.5, -2.0, 5.0]),
        ("ONLY_FIRST_REPLICA", [-1.0, -1.0, 5.0], [-1.0, -1.0, 5.0]),
    ],
)
def test_replicas_write_rows_together(aggregation: str, first: list[float], second: list[float]) -> None:
    strategy = mirrored(2)
    with strategy.scope():
        x: Any = tf.Variable([1.0, 3.0, 5.0], aggregation=getattr(Aggregation, aggregation))
    strategy.run(lambda: x.scatter_sub(slices([replica() + 2.0, 2 * replica() + 4.0], [0, 1])))
    assert [copy.numpy().tolist() for copy in x.values] == [first, second]


@pytest.mark.parametrize(
    ("aggregation", "written"),
    [
        ("NONE", [[-1.0, -1.0, 5.0], [-2.0, 3.0, 5.0]]),
        ("SUM", [[-4.0, -1.0, 5.0]] * 2),
        ("MEAN", [[-1.5, 1.0, 5.0]] * 2),
        ("ONLY_FIRST_REPLICA", [[-1.0, -1.0, 5.0]] * 2),
    ],
)
def test_workers_write_unequal_rows_together(aggregation: str, written: list[list[float]]) -> None:
    def worker() -> Any:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        with strategy.scope():
            x = tf.Variable([1.0, 3.0, 5.0], aggregation=getattr(Aggregation, aggregation))
        count = 2 - collshim.current().rank
        strategy.run(lambda: x.scatter_sub(slices([replica() + 2.0, 4.0][:count], [0, 1][:count])))
        return x.numpy().tolist()

    assert collshim.launch(worker, 2, timeout=200) == written


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"aggregation": Aggregation.SUM}, "scatter_min is only supported for mirrored variable .* got: .*V2.SUM"),
        ({"synchronization": tf.VariableSynchronization.ON_READ}, "doesn't support `scatter_min`"),
    ],
)
def test_incompatible_row_writes_of_replicas_are_refused(more: dict[str, Any], said: str) -> None:
    with mirrored(2).scope():
        x = tf.Variable(whole(), **more)
    with pytest.raises(NotImplementedError, match=said):
        x.scatter_min(slices([[1.0, 1.0]], [0]))


def test_variable_argument_of_run_belongs_to_the_strategy() -> None:
    strategy = mirrored(2)
    with strategy.scope():
        x: Any = tf.Variable(1.0, aggregation=Aggregation.SUM)

    def step(given: Any) -> bool:
        given.assign(tf.constant(replica() + 1.0))
        return given is x

    assert (strategy.run(step, args=(x,)), [float(copy) for copy in x.values]) == (True, [3.0, 3.0])


def test_replica_updates_every_copy() -> None:
    strategy = mirrored(2)
    with strategy.scope():
        x: Any = tf.Variable(1.0)
    context = tf.distribute.get_replica_context
    strategy.run(lambda: context()._update(x, lambda copy, y: copy.assign(y), (tf.constant(replica() + 2.0),)))
    assert [float(copy) for copy in x.values] == [2.0, 3.0]


def test_variable_shape_may_be_open() -> None:
    x = tf.Variable([1.0], shape=[None])
    assert x.assign([1.0, 2.0]).numpy().tolist() == [1.0, 2.0]
    assert (str(x.shape), str(tf.Variable(1.0, shape=tf.TensorShape(None)).shape)) == ("(None,)", "<unknown>")
    with pytest.raises(ValueError, match="Shape mismatch"):
        x.assign([[1.0]])


@pytest.mark.parametrize(
    ("change", "found", "slopes"),
    [
        ("add", [7.0, 13.0, 4.0], ([1.0, 10.0, 100.0], [1.0, 10.0, 100.0])),
        ("sub", [-5.0, -9.0, 2.0], ([1.0, 10.0, 100.0], [-1.0, -10.0, -100.0])),
        ("max", [6.0, 11.0, 3.0], ([0.0, 0.0, 100.0], [1.0, 10.0, 0.0])),
        ("min", [1.0, 2.0, 1.0], ([1.0, 10.0, 0.0], [0.0, 0.0, 100.0])),
    ],
)
def test_tensors_are_changed_at_indices_with_gradients(change: str, found: Any, slopes: Any) -> None:
    scatter = getattr(tf, f"tensor_scatter_nd_{change}")
    whole, updates = tf.constant([1.0, 2.0, 3.0]), tf.constant([6.0, 11.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch([whole, updates])
        result = scatter(whole, [[0], [1], [2]], updates)
        weighted = result * tf.constant([1.0, 10.0, 100.0])
    assert result.numpy().tolist() == found
    gradients = tape.gradient(weighted, [whole, updates])
    assert tuple(gradient.numpy().tolist() for gradient in gradients) == slopes
    for indices, values in (([[3]], [5.0]), ([[-1]], [5.0]), ([[0]], [5.0, 6.0])):
        with pytest.raises(tf.errors.InvalidArgumentError):
            scatter(whole, indices, values)


def test_each_occurrence_of_an_index_counts() -> None:
    assert tf.tensor_scatter_nd_add([1, 2], [[0], [0]], [5, 6]).numpy().tolist() == [12, 2]
    whole, updates = tf.constant([1.0, 2.0]), tf.constant([1.0, 1.0])
    with tf.GradientTape() as tape:
        tape.watch([whole, updates])
        result = tf.tensor_scatter_nd_max(whole, [[0], [0]], updates)
    gradients = tape.gradient(result, [whole, updates])
    assert np.allclose(gradients[0].numpy(), [1 / 3, 1])
    assert np.allclose(gradients[1].numpy(), [1 / 3, 1 / 3])
