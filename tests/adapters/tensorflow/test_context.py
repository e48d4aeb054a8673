"""The strategy and the replica of a caller, and the errors of calls from a wrong context."""

from __future__ import annotations

import gc
import threading
from typing import Any

import pytest
import torch

import collshim
import collshim.tensorflow as tf
from collshim.tensorflow.distribute import stack
from tests.adapters.tensorflow.conftest import Run, context, mirrored, replica

ENTER_FROM_REPLICA = r"^Method requires being in cross-replica context, use get_replica_context\(\)\.merge_call\(\)$"


def one_device() -> tf.distribute.Strategy:
    return tf.distribute.OneDeviceStrategy("/cpu:0")


def workers() -> tf.distribute.Strategy:
    return tf.distribute.MultiWorkerMirroredStrategy()


EVERY_STRATEGY = pytest.mark.parametrize(
    "make", [lambda: mirrored(1), lambda: mirrored(2), one_device, workers], ids=["one", "two", "device", "workers"]
)


def test_default_strategy_has_one_replica() -> None:
    assert not tf.distribute.has_strategy()
    assert not tf.distribute.in_cross_replica_context()
    assert context().strategy is tf.distribute.get_strategy()
    assert context().num_replicas_in_sync == 1
    assert context().replica_id_in_sync_group == 0
    assert type(context().replica_id_in_sync_group) is int
    assert context().all_gather(torch.tensor(1.0), axis=0).item() == 1.0


@EVERY_STRATEGY
def test_scope_is_cross_replica(make: Any) -> None:
    strategy = make()
    with strategy.scope() as entered:
        assert entered is strategy is tf.distribute.get_strategy()
        assert tf.distribute.get_replica_context() is None
        assert tf.distribute.in_cross_replica_context()
        assert tf.distribute.has_strategy()
    assert not tf.distribute.has_strategy()


def test_unreferenced_scope_stays_entered() -> None:
    strategy = mirrored(2)
    try:
        strategy.scope().__enter__()
        gc.collect()
        assert tf.distribute.get_strategy() is strategy
    finally:
        stack.leave(0)


def test_values_are_made_in_the_context_of_the_caller() -> None:
    found: list[tuple[bool, bool]] = []
    strategy, other = mirrored(2), mirrored(2)

    def make(ctx: Any) -> None:
        found.append((tf.distribute.has_strategy(), tf.distribute.in_cross_replica_context()))

    strategy.experimental_distribute_values_from_function(make)
    with other.scope():
        strategy.experimental_distribute_values_from_function(make)
    with strategy.scope():
        strategy.experimental_distribute_values_from_function(make)
    mirrored(1).run(lambda: strategy.experimental_distribute_values_from_function(make))
    assert found == [(False, False)] * 2 + [(True, True)] * 4 + [(True, False)] * 2


def test_scope_can_be_entered_again_inside_itself() -> None:
    strategy = mirrored(2)
    scope = strategy.scope()
    with scope, scope, strategy.scope():
        assert tf.distribute.get_strategy() is strategy
    assert not tf.distribute.has_strategy()


def test_replica_knows_its_number_strategy_and_device(run_two: Run) -> None:
    def ask() -> Any:
        here = context()
        assert here.strategy is tf.distribute.get_strategy()
        assert not tf.distribute.in_cross_replica_context()
        assert here.replica_id_in_sync_group.dtype is torch.int32
        assert here.replica_id_in_sync_group.shape == ()
        return int(here.replica_id_in_sync_group), here.num_replicas_in_sync, len(here.devices)

    assert run_two(ask) == [(0, 2, 1), (1, 2, 1)]


def test_devices_have_tensorflow_names() -> None:
    strategy = tf.distribute.MirroredStrategy(["gpu:0", "/GPU:1", "/device:CPU:0"])
    place = "/job:localhost/replica:0/task:0/device:"
    assert strategy.extended.worker_devices == (f"{place}GPU:0", f"{place}GPU:1", f"{place}CPU:0")
    names = strategy.experimental_local_results(strategy.run(lambda: context().devices[0]))
    assert names == strategy.extended.worker_devices


def test_other_threads_are_outside_the_strategy() -> None:
    found: list[bool] = []
    with mirrored(2).scope():
        thread = threading.Thread(target=lambda: found.append(tf.distribute.has_strategy()))
        thread.start()
        thread.join(30)
    assert found == [False]


@EVERY_STRATEGY
@pytest.mark.parametrize("call", ["run", "reduce", "scope", "reduce_to"])
def test_replica_cannot_make_cross_replica_calls(make: Any, call: str) -> None:
    strategy = make()
    calls = {
        "run": lambda: strategy.run(lambda: None),
        "reduce": lambda: strategy.reduce("SUM", 1.0, axis=None),
        "scope": lambda: strategy.scope().__enter__(),
        "reduce_to": lambda: strategy.extended.reduce_to("SUM", 1.0, "CPU:0"),
    }
    for kind in (RuntimeError, collshim.ArgumentError):
        with pytest.raises(kind, match=ENTER_FROM_REPLICA):
            strategy.run(calls[call])


def test_replica_gather_suggests_all_gather() -> None:
    strategy = mirrored(2)
    with pytest.raises(RuntimeError, match=r"^tf\.distribute\.Strategy\.gather method requires cross-replica context"):
        strategy.run(lambda: strategy.gather(torch.ones(1), axis=0))


def saved_replica(strategy: tf.distribute.Strategy) -> tf.distribute.ReplicaContext:
    saved: list[tf.distribute.ReplicaContext] = []
    strategy.run(lambda: saved.append(context()))
    return saved[0]


@EVERY_STRATEGY
def test_replica_context_is_unusable_elsewhere(make: Any) -> None:
    strategy = make()
    saved = saved_replica(strategy)
    with pytest.raises(RuntimeError, match=r"^Mismatching tf\.distribute\.Strategy objects: .* is not .*\.$"):
        saved.all_gather(torch.ones(1), axis=0)
    with strategy.scope(), pytest.raises(RuntimeError, match=r"^Need to be inside `call_for_each_replica\(\)`$"):
        saved.all_reduce("SUM", torch.ones(1))
    with pytest.raises(RuntimeError, match=r"^Mismatching ReplicaContext\.$"):
        strategy.run(lambda: saved.merge_call(lambda given: None))


def test_strategies_cannot_be_mixed() -> None:
    with mirrored(2).scope():
        with pytest.raises(RuntimeError, match=r"^Mixing different tf\.distribute\.Strategy objects: .* is not "):
            one_device().scope().__enter__()
        with pytest.raises(RuntimeError, match=r"^Mixing different tf\.distribute\.Strategy objects: .* is not "):
            one_device().reduce("SUM", 1.0, axis=None)


def test_default_strategy_scope_changes_nothing() -> None:
    default = tf.distribute.get_strategy()
    with default.scope():
        assert not tf.distribute.has_strategy()
        assert not tf.distribute.in_cross_replica_context()
    with mirrored(2).scope(), pytest.raises(RuntimeError, match=r"^Must not nest tf\.distribute\.Strategy scopes\.$"):
        default.scope().__enter__()


def test_strategy_can_be_set_without_a_block() -> None:
    first, second = mirrored(2), one_device()
    try:
        tf.distribute.experimental_set_strategy(first)
        assert tf.distribute.get_strategy() is first
        tf.distribute.experimental_set_strategy(second)
        assert tf.distribute.get_strategy() is second
        with (
            second.scope(),
            pytest.raises(RuntimeError, match=r"^Must not be called inside a `tf\.distribute\.Strategy"),
        ):
            tf.distribute.experimental_set_strategy(first)
    finally:
        tf.distribute.experimental_set_strategy(None)
    assert not tf.distribute.has_strategy()


def test_failing_replica_leaves_no_strategy_behind() -> None:
    with pytest.raises(KeyError):
        mirrored(1).run(lambda: {"is": "here"}["missing"])
    assert not tf.distribute.has_strategy()
    assert replica() == 0
