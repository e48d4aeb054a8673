"""Names of ``tf.distribute`` and ``tf.data`` that newer ones have replaced, which programs still use.

Source of the expected values: TensorFlow 2.21, on two CPUs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored

OLDER = tf.distribute.experimental
DATA = tf.data.experimental


def test_the_older_multi_worker_strategy_takes_a_communication() -> None:
    strategy = OLDER.MultiWorkerMirroredStrategy(OLDER.CollectiveCommunication.RING)
    assert isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
    assert isinstance(tf.distribute.MultiWorkerMirroredStrategy(), OLDER.MultiWorkerMirroredStrategy)
    assert not isinstance(mirrored(1), OLDER.MultiWorkerMirroredStrategy)
    assert OLDER.MultiWorkerMirroredStrategy("nccl").num_replicas_in_sync == 1
    assert OLDER.MultiWorkerMirroredStrategy(communication=OLDER.CommunicationImplementation.AUTO) is not strategy
    for wrong in (OLDER.CommunicationOptions(), None, "x"):
        with pytest.raises(ValueError, match=r"implementation|CommunicationImplementation"):
            OLDER.MultiWorkerMirroredStrategy(wrong)
    with pytest.raises(TypeError, match="communication_options"):
        OLDER.MultiWorkerMirroredStrategy(communication_options=OLDER.CommunicationOptions())


def test_the_older_tpu_strategy_takes_a_device_assignment() -> None:
    assert isinstance(OLDER.TPUStrategy(device_assignment=None), tf.distribute.TPUStrategy)
    with pytest.raises(ValueError, match="a device assignment and partitioning are not covered"):
        OLDER.TPUStrategy(device_assignment=[[0]])


def test_older_implementations_are_the_same_class() -> None:
    assert OLDER.CollectiveCommunication is OLDER.CommunicationImplementation


STRATEGIES: dict[str, Callable[[], Any]] = {
    "one": lambda: mirrored(1),
    "two": lambda: mirrored(2),
    "device": lambda: tf.distribute.OneDeviceStrategy("CPU:0"),
    "workers": tf.distribute.MultiWorkerMirroredStrategy,
}


@pytest.mark.parametrize("name", STRATEGIES)
def test_values_that_optimizers_keep_once_are_updated_on_each_device(name: str) -> None:
    strategy = STRATEGIES[name]()
    size = strategy.num_replicas_in_sync
    devices = strategy.extended.non_slot_devices([])
    assert devices == strategy.extended.worker_devices
    assert strategy.extended.worker_devices_by_replica == [[device] for device in devices]

    def update(x: Any, y: int = 1) -> Any:
        return x * 2 + y

    grouped = strategy.extended.update_non_slot(devices, update, (tf.constant(3.0),))
    assert [float(one) for one in strategy.experimental_local_results(grouped)] == [7.0] * size
    each = strategy.extended.update_non_slot(devices, update, (tf.constant(3.0),), {"y": 2}, group=False)
    assert [float(one) for one in each] == [8.0] * size
    values = strategy.experimental_distribute_values_from_function(lambda one: one.replica_id_in_sync_group)
    each = strategy.extended.update_non_slot(devices, update, (values,), group=False)
    assert [int(one) for one in each] == [1, 3][:size]


def test_the_default_strategy_updates_with_a_variable() -> None:
    extended = tf.distribute.get_strategy().extended
    second, first = tf.Variable(1.0, name="b"), tf.Variable([1.0, 2.0], name="a")
    assert extended.non_slot_devices([second, first]) is first
    assert extended.update_non_slot(first, lambda x: x + 1, (2,)) == 3


def test_variables_are_colocated_by_the_strategys_method() -> None:
    strategy, elsewhere = mirrored(2), tf.Variable(1.0)
    with strategy.scope():
        variable = tf.Variable(1.0)
        with strategy.colocate_vars_with(variable):
            assert float(tf.Variable(2.0)) == 2.0
        with pytest.raises(ValueError, match="`colocate_vars_with` must only be passed a variable created in this"):
            strategy.colocate_vars_with(elsewhere)


def test_datasets_of_a_strategy_are_reduced() -> None:
    strategy = mirrored(2)
    shared = strategy.experimental_distribute_dataset(tf.data.Dataset.range(8).batch(4))
    own = strategy.distribute_datasets_from_function(lambda _: tf.data.Dataset.range(4).batch(2))

    def add(total: Any, parts: Any) -> Any:
        return total + strategy.reduce("SUM", parts, axis=0)

    assert int(shared.reduce(tf.constant(0, tf.int64), add)) == 28
    assert int(own.reduce(tf.constant(0, tf.int64), add)) == 6
    assert int(shared.reduce(0, lambda count, _: count + 1)) == 2


def test_iterators_have_the_method_next() -> None:
    iterator = iter(tf.data.Dataset.range(1))
    assert int(iterator.next()) == 0
    with pytest.raises(StopIteration):
        iterator.next()
    parts = iter(mirrored(2).experimental_distribute_dataset(tf.data.Dataset.range(2).batch(2))).next()
    assert [part.numpy().tolist() for part in parts.values] == [[0], [1]]


def counting(size: int) -> Any:
    return tf.data.Dataset.range(size)


def listed(dataset: Any) -> list[Any]:
    return [tf.nest.map_structure(lambda part: part.numpy().tolist(), element) for element in dataset]


APPLIED: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "enumerate": (lambda: counting(2).apply(DATA.enumerate_dataset(5)), [(5, 0), (6, 1)]),
    "unbatch": (lambda: counting(3).batch(2).apply(DATA.unbatch()), [0, 1, 2]),
    "unique": (lambda: tf.data.Dataset.from_tensor_slices([1, 1, 2]).apply(DATA.unique()), [1, 2]),
    "take_while": (lambda: counting(9).apply(DATA.take_while(lambda x: x < 3)), [0, 1, 2]),
    "scan": (lambda: counting(4).apply(DATA.scan(tf.constant(0, tf.int64), lambda s, x: (s + x, s + x))), [0, 1, 3, 6]),
    "group": (
        lambda: counting(6).apply(DATA.group_by_window(lambda x: x % 2, lambda _, rows: rows.batch(3), window_size=3)),
        [[0, 2, 4], [1, 3, 5]],
    ),
    "bucket": (
        lambda: (
            counting(4)
            .map(lambda x: tf.ones([x + 1]))
            .apply(DATA.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3], [2, 2]))
        ),
        [[[1, 0], [1, 1]], [[1, 1, 1, 0], [1, 1, 1, 1]]],
    ),
    "map_and_batch": (lambda: counting(3).apply(DATA.map_and_batch(lambda x: x * 2, 2)), [[0, 2], [4]]),
    "whole batches": (
        lambda: counting(3).apply(DATA.map_and_batch(lambda x: x * 2, 2, drop_remainder=True)),
        [[0, 2]],
    ),
    "interleave": (
        lambda: counting(3).apply(DATA.parallel_interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(4), 2, 2)),
        [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 2, 2],
    ),
    "prefetch": (lambda: counting(2).apply(DATA.prefetch_to_device("GPU:0")), [0, 1]),
    "copy": (lambda: counting(2).apply(DATA.copy_to_device("GPU:0")), [0, 1]),
    "choose": (
        lambda: DATA.choose_from_datasets(
            [counting(1), tf.data.Dataset.range(10, 15)],
            tf.data.Dataset.from_tensor_slices(tf.constant([0, 0, 1, 1, 0], tf.int64)),
        ),
        [0, 10, 11],
    ),
    "counter": (lambda: DATA.Counter(2, 3).take(3), [2, 5, 8]),
    "down": (lambda: tf.data.Dataset.counter(0, -1, tf.int32).take(3), [0, -1, -2]),
    "counted": (lambda: counting(3).filter(lambda x: x > 0).apply(DATA.assert_cardinality(2)), [1, 2]),
}


@pytest.mark.parametrize("name", APPLIED)
def test_experimental_functions_do_what_methods_do(name: str) -> None:
    make, wanted = APPLIED[name]
    assert listed(make()) == wanted


def test_random_experimental_functions_keep_the_elements() -> None:
    assert sorted(listed(counting(3).apply(DATA.shuffle_and_repeat(3, 2, seed=1)))) == [0, 0, 1, 1, 2, 2]
    sampled = DATA.sample_from_datasets([counting(2), tf.data.Dataset.range(10, 12)], [0.5, 0.5], seed=1)
    assert sorted(listed(sampled)) == [0, 1, 10, 11]


def test_numbers_of_elements_are_returned_and_asserted() -> None:
    assert int(DATA.cardinality(counting(3).repeat())) == DATA.INFINITE_CARDINALITY
    some = counting(3).filter(lambda _: True)
    assert int(some.apply(DATA.assert_cardinality(3)).cardinality()) == 3
    for count, text in ((4, "contain 4 elements but contained only 3"), (2, "contain 2 .* contained at least 3")):
        with pytest.raises(tf.errors.FailedPreconditionError, match=text):
            listed(some.apply(DATA.assert_cardinality(count)))
    with pytest.raises(tf.errors.FailedPreconditionError, match="contain an infinite number of elements"):
        listed(some.apply(DATA.assert_cardinality(DATA.INFINITE_CARDINALITY)))


def test_single_elements_and_structures() -> None:
    assert int(DATA.get_single_element(counting(1))) == 0
    assert DATA.get_structure(iter(counting(1))) == DATA.get_structure(counting(1)) == counting(1).element_spec
    with pytest.raises(TypeError, match="`dataset_or_iterator` is a int, should be a dataset or an iterator"):
        DATA.get_structure(3)
    with pytest.raises(TypeError):
        DATA.take_while()


def options(**given: Any) -> Any:
    made = tf.data.Options()
    for name, value in given.items():
        owner = made.experimental_distribute if name == "auto_shard_policy" else made
        setattr(owner, name, value)
    return made


def test_options_are_merged() -> None:
    off = options(auto_shard_policy=DATA.AutoShardPolicy.OFF)
    both = off.merge(options(deterministic=True))
    assert both == options(deterministic=True, auto_shard_policy=DATA.AutoShardPolicy.OFF)
    found = counting(3).with_options(off).map(lambda x: x).with_options(options(deterministic=True)).options()
    assert found == both
    assert off.merge(options(auto_shard_policy=DATA.AutoShardPolicy.AUTO)) == off
    assert options(deterministic=True).merge(options(deterministic=False)).deterministic is False
    other = counting(3).with_options(options(deterministic=True))
    assert tf.data.Dataset.zip((counting(3).with_options(off), other)).options() == both
    assert counting(3).with_options(off).concatenate(other).options() == both


def test_options_have_tensorflows_attributes() -> None:
    made = options(experimental_deterministic=False, experimental_slack=True)
    made.threading.private_threadpool_size = 3
    made.autotune.enabled = True
    made.experimental_optimization.map_parallelization = True
    assert made.deterministic is made.experimental_deterministic is False
    assert made.merge(options()).experimental_threading.private_threadpool_size == 3
    assert made != options()
    with pytest.raises(AttributeError, match="Cannot set the property nope on Options"):
        made.nope = 1
    with pytest.raises(TypeError, match='Property "auto_shard_policy" must be of type'):
        made.experimental_distribute.auto_shard_policy = "OFF"
