"""Tensors of the real TensorFlow 2.21.0 in collshim's collectives; run only by ``python -m tests.over_real``."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest
import torch

import collshim
import collshim.tensorflow as stand_in
from collshim.arrays import as_torch
from collshim.communicator import Communicator

tf: Any = import_module("tensorflow")

DTYPES = ("bool", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def on_ranks(fn: Callable[[Communicator], Any], size: int = 2) -> list[Any]:
    """Return the result of ``fn`` on each rank; ranks are threads."""
    return collshim.launch(lambda: fn(collshim.current().communicator), size, timeout=200)


def rows(communicator: Communicator) -> Any:
    return tf.constant([[1.0, 2.0], [3.0, 4.0]]) * float(communicator.rank + 1)


COLLECTIVES: dict[str, tuple[Callable[[Communicator, Any], Any], Any]] = {
    "all_reduce": (lambda c, x: c.all_reduce(x), [[[3, 6], [9, 12]]] * 2),
    "all_gather": (lambda c, x: c.all_gather(x), [[[[1, 2], [3, 4]], [[2, 4], [6, 8]]]] * 2),
    "broadcast": (lambda c, x: c.broadcast(x, 1), [[[2, 4], [6, 8]]] * 2),
    "reduce_scatter": (lambda c, x: c.reduce_scatter(x), [[3, 6], [9, 12]]),
    "all_to_all": (lambda c, x: c.all_to_all(x), [[[1, 2], [2, 4]], [[3, 4], [6, 8]]]),
    "scatter": (lambda c, x: c.scatter(x if c.rank == 0 else None, 0, like=x[0]), [[1, 2], [3, 4]]),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collective_returns_tensorflow_tensors(name: str) -> None:
    call, wanted = COLLECTIVES[name]
    found = on_ranks(lambda communicator: call(communicator, rows(communicator)).wait())
    assert all(isinstance(result, tf.Tensor) for result in found)
    assert [result.numpy().tolist() for result in found] == wanted


@pytest.mark.parametrize("name", DTYPES)
def test_dtypes_are_kept(name: str) -> None:
    given = tf.cast(tf.constant([0, 1, 3]), name)
    for result in on_ranks(lambda communicator: communicator.all_gather(given).wait()):
        assert result.dtype == given.dtype
        assert np.array_equal(result.numpy(), np.stack([given.numpy()] * 2))


@pytest.mark.parametrize("shape", [(), (0, 3), (1,)])
def test_shapes_are_kept(shape: tuple[int, ...]) -> None:
    for result in on_ranks(lambda communicator: communicator.all_reduce(tf.ones(shape)).wait()):
        assert tuple(result.shape) == shape


GRADIENTS: dict[str, Callable[[Communicator, Any], Any]] = {
    "all_reduce": lambda c, x: c.all_reduce(x).wait(),
    "mean": lambda c, x: c.all_reduce(x, "avg").wait(),
    "product": lambda c, x: c.all_reduce(x, "prod").wait(),
    "all_gather": lambda c, x: c.all_gather(x).wait(),
    "reduce_scatter": lambda c, x: c.reduce_scatter(x).wait(),
    "twice": lambda c, x: c.all_reduce(c.all_reduce(x * x).wait() * x).wait(),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_tape_gradients_match_torch(name: str) -> None:
    call = GRADIENTS[name]

    def with_tape(communicator: Communicator) -> Any:
        x = rows(communicator)
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(call(communicator, x) ** 3) * (communicator.rank + 1)
        return tape.gradient(loss, x).numpy().tolist()

    def with_torch(communicator: Communicator) -> Any:
        x = torch.tensor(rows(communicator).numpy(), requires_grad=True)
        ((call(communicator, x) ** 3).sum() * (communicator.rank + 1)).backward()
        assert x.grad is not None
        return x.grad.tolist()

    found, wanted = on_ranks(with_tape), on_ranks(with_torch)
    assert np.any(np.asarray(wanted))
    assert np.allclose(found, wanted)


def test_second_order_gradients() -> None:
    def second(communicator: Communicator) -> Any:
        x = tf.constant(2.0 + communicator.rank)
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = communicator.all_reduce(x * x).wait()
                loss = y * y
            first = inner.gradient(loss, x)
        return first.numpy().item(), outer.gradient(first, x).numpy().item()

    # The total of y^2 over both ranks is 2 (a^2 + b^2)^2, for a = 2 and b = 3.
    assert [first for first, _ in on_ranks(second)] == [8 * 13 * 2, 8 * 13 * 3]


def test_nothing_is_recorded_without_a_tape() -> None:
    for result in on_ranks(lambda communicator: communicator.all_reduce(tf.ones(2)).wait()):
        assert as_torch(result).requires_grad is False


def test_world_can_mix_tensorflow_torch_and_numpy() -> None:
    def rank(communicator: Communicator) -> Any:
        value: Any = np.array([1, 2], np.float32)
        if communicator.rank == 0:
            value = tf.constant(value)
            with tf.GradientTape() as tape:
                tape.watch(value)
                total = communicator.all_reduce(value).wait()
                loss = tf.reduce_sum(total * [1.0, 10.0])
            return type(total).__name__, total.numpy().tolist(), tape.gradient(loss, value).numpy().tolist()
        tensor = torch.tensor(value, requires_grad=True)
        total = communicator.all_reduce(tensor).wait()
        (total * torch.tensor([5.0, 50.0])).sum().backward()
        return type(total).__name__, total.tolist(), None if tensor.grad is None else tensor.grad.tolist()

    assert on_ranks(rank) == [("EagerTensor", [2.0, 4.0], [6.0, 60.0]), ("Tensor", [2.0, 4.0], [6.0, 60.0])]


def test_replicas_of_the_stand_in_take_real_tensors() -> None:
    strategy = stand_in.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def step() -> Any:
        context = stand_in.distribute.get_replica_context()
        x = tf.constant([1.0 + int(context.replica_id_in_sync_group)])
        with tf.GradientTape() as tape:
            tape.watch(x)
            gathered = context.all_gather(x, axis=0)
            loss = tf.reduce_sum(context.all_reduce("MEAN", gathered * gathered))
        return gathered.numpy().tolist(), tape.gradient(loss, x).numpy().tolist()

    gathered, gradient = strategy.run(step)
    assert [part.values for part in gathered] == [(1.0, 1.0), (2.0, 2.0)]
    assert gradient[0].values == (4.0, 8.0)


def test_tensorflow_tensor_is_not_an_output() -> None:
    def rank(communicator: Communicator) -> None:
        with pytest.raises(collshim.ArgumentValueError, match="read-only EagerTensor"):
            communicator.all_reduce(tf.ones(2), out=tf.ones(2))

    on_ranks(rank)


def test_graph_tensor_is_refused_before_sending() -> None:
    def traced(x: Any) -> Any:
        with pytest.raises(collshim.ArgumentTypeError, match="SymbolicTensor"):
            collshim.current().communicator.all_reduce(x)
        return x

    tf.function(traced)(tf.ones(2))
