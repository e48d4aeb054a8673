"""``tf.data.Dataset`` and datasets of strategies; expected results are from TensorFlow 2.21 on CPUs and two workers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored

Dataset = tf.data.Dataset


def shown(value: Any) -> Any:
    """Convert elements to lists of numbers; a distributed one to a list of the replicas' values."""
    if isinstance(value, tf.distribute.DistributedValues):
        return [shown(part) for part in value.values]
    if isinstance(value, dict):
        return {key: shown(part) for key, part in value.items()}
    return tuple(map(shown, value)) if isinstance(value, tuple) else np.asarray(value).tolist()


ELEMENTS: dict[str, tuple[Callable[[], Any], list[Any]]] = {
    "range": (lambda: Dataset.range(2, 7, 2), [2, 4, 6]),
    "slices": (lambda: Dataset.from_tensor_slices(([1, 2], [[3.0], [4.0]])), [(1, [3.0]), (2, [4.0])]),
    "mapping": (lambda: Dataset.from_tensor_slices({"a": [1, 2], "b": [3, 4]}), [{"a": 1, "b": 3}, {"a": 2, "b": 4}]),
    "tensors": (lambda: Dataset.from_tensors([1, 2]), [[1, 2]]),
    "batch": (lambda: Dataset.range(5).batch(2), [[0, 1], [2, 3], [4]]),
    "drop": (lambda: Dataset.range(5).batch(2, drop_remainder=True), [[0, 1], [2, 3]]),
    "batches": (lambda: Dataset.range(4).batch(2).batch(2), [[[0, 1], [2, 3]]]),
    "unbatch": (lambda: Dataset.range(3).batch(2).unbatch(), [0, 1, 2]),
    "map": (lambda: Dataset.range(3).map(lambda x: x * 2), [0, 2, 4]),
    "arguments": (lambda: Dataset.from_tensor_slices(([1], [3])).map(lambda a, b: (a + b, a)), [(4, 1)]),
    "list": (lambda: Dataset.range(1).map(lambda x: [x, 1.5]), [(0, 1.5)]),
    "repeat": (lambda: Dataset.range(2).repeat(2), [0, 1, 0, 1]),
    "for ever": (lambda: Dataset.range(2).repeat().take(3), [0, 1, 0]),
    "never": (lambda: Dataset.range(0).repeat(), []),
    "flat map": (lambda: Dataset.range(3).flat_map(lambda x: Dataset.range(x)), [0, 0, 1]),
    "interleave": (
        lambda: Dataset.range(1, 4).interleave(lambda x: Dataset.range(x, x + x), cycle_length=2, block_length=2),
        [1, 2, 3, 3, 4, 5],
    ),
    "apply": (lambda: Dataset.range(5).apply(lambda dataset: dataset.take(2)), [0, 1]),
    "rebatch": (lambda: Dataset.range(5).batch(2).rebatch(3), [[0, 1, 2], [3, 4]]),
    "take": (lambda: Dataset.range(5).take(2), [0, 1]),
    "take all": (lambda: Dataset.range(2).take(-1), [0, 1]),
    "skip": (lambda: Dataset.range(5).skip(3), [3, 4]),
    "shard": (lambda: Dataset.range(6).shard(3, 1), [1, 4]),
    "prefetch": (lambda: Dataset.range(2).prefetch(tf.data.AUTOTUNE).cache(), [0, 1]),
    "zip": (lambda: Dataset.zip((Dataset.range(2), Dataset.range(2, 9))), [(0, 2), (1, 3)]),
    "concatenate": (lambda: Dataset.range(2).concatenate(Dataset.range(1)), [0, 1, 0]),
    "filter": (lambda: Dataset.range(6).filter(lambda x: x % 2 == 0), [0, 2, 4]),
    "enumerate": (lambda: Dataset.from_tensor_slices([5, 6]).enumerate(), [(0, 5), (1, 6)]),
}


@pytest.mark.parametrize("name", ELEMENTS)
def test_dataset_yields_its_elements_at_every_iteration(name: str) -> None:
    make, wanted = ELEMENTS[name]
    dataset = make()
    assert [shown(element) for element in dataset] == wanted
    assert [shown(element) for element in dataset.as_numpy_iterator()] == wanted
    if name not in ("unbatch", "filter", "never", "flat map", "interleave", "rebatch"):
        assert len(dataset) == len(wanted)


def test_elements_are_tensors() -> None:
    first: Any = next(iter(Dataset.range(3)))
    assert repr(first) == "<tf.Tensor: shape=(), dtype=int64, numpy=0>"
    assert next(iter(Dataset.from_tensor_slices([1.5]))).dtype is tf.float32
    assert next(iter(Dataset.from_tensor_slices(np.array([1.5])))).dtype is tf.float64


def test_shuffle_stays_within_the_buffer() -> None:
    for element, place in zip(Dataset.range(50).shuffle(4), range(50), strict=True):
        assert int(element) <= place + 3
    seeded = [Dataset.range(9).shuffle(4, seed=3) for _ in range(2)]
    found = [[shown(list(one.as_numpy_iterator())) for _ in range(2)] for one in seeded]
    assert found[0] == found[1]
    assert found[0][0] != found[0][1]
    assert sorted(found[0][0]) == list(range(9))
    kept = Dataset.range(9).shuffle(9, seed=3, reshuffle_each_iteration=False)
    assert list(kept.as_numpy_iterator()) == list(kept.as_numpy_iterator())


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: Dataset.range(3).shard(2, 2), tf.errors.InvalidArgumentError, "between 0 and 1 .currently index = 2"),
        (lambda: Dataset.range(3).shard(0, 0), tf.errors.InvalidArgumentError, "num_shards = 0"),
        (lambda: Dataset.range(3).batch(0), tf.errors.InvalidArgumentError, "Batch size must be greater than zero"),
        (lambda: Dataset.range(3).shuffle(0), tf.errors.InvalidArgumentError, "buffer_size must be greater than zero"),
        (lambda: Dataset.from_tensor_slices(([1, 2], [3])), ValueError, "Dimensions 2 and 1 are not compatible"),
        (lambda: Dataset.from_tensor_slices(3), ValueError, "only supported for rank >= 1"),
        (lambda: Dataset.range(1, 2, 3, 4), ValueError, "between 1 and 3 but was 4"),
        (lambda: len(Dataset.range(3).repeat()), TypeError, "The dataset is infinite"),
        (lambda: len(Dataset.range(3).filter(bool)), TypeError, "The dataset length is unknown"),
        (lambda: Dataset.range(3).cache("file"), TypeError, "kept in memory"),
        (lambda: iter(Dataset.range(0)).get_next(), tf.errors.OutOfRangeError, "End of sequence"),
        (lambda: mirrored(2).experimental_distribute_dataset([1]), TypeError, "should be a tf.data.Dataset"),
        (lambda: list(mirrored(2).experimental_distribute_dataset(Dataset.range(2))), IndexError, "batch it before"),
    ],
)
def test_unsupported_dataset_calls_are_refused(call: Callable[[], Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        call()


SHARED: dict[tuple[int, int, int], list[list[list[int]]]] = {
    (2, 10, 4): [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8], [9]]],
    (2, 9, 4): [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8], []]],
    (3, 10, 4): [[[0, 1], [2, 3], []], [[4, 5], [6, 7], []], [[8], [9], []]],
    (3, 5, 4): [[[0, 1], [2, 3], []], [[4], [], []]],
}


@pytest.mark.parametrize(("case", "wanted"), SHARED.items())
def test_replicas_share_each_batch(case: tuple[int, int, int], wanted: list[Any]) -> None:
    size, count, batch = case
    strategy = mirrored(size)
    dataset = strategy.experimental_distribute_dataset(Dataset.range(count).batch(batch))
    for _ in range(2):
        assert [shown(element) for element in dataset] == wanted
    sums = [strategy.reduce("SUM", strategy.run(tf.reduce_sum, (part,)), axis=None) for part in dataset]
    assert int(sum(sums)) == sum(range(count))


def test_each_component_is_shared() -> None:
    pairs = Dataset.from_tensor_slices(([1, 2, 3], [4.0, 5.0, 6.0])).batch(2)
    found = [shown(element) for element in mirrored(2).experimental_distribute_dataset(pairs)]
    assert found == [([[1], [2]], [[4.0], [5.0]]), ([[3], []], [[6.0], []])]


def test_replicas_take_function_elements_in_turn() -> None:
    contexts: list[Any] = []

    def make(context: Any) -> Any:
        contexts.append((context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync))
        return Dataset.range(5).batch(2)

    found = {size: mirrored(size).distribute_datasets_from_function(make) for size in (1, 2, 3)}
    assert contexts == [(1, 0, 1), (1, 0, 2), (1, 0, 3)]
    assert [shown(element) for element in found[1]] == [[0, 1], [2, 3], [4]]
    assert [shown(element) for element in found[2]] == [[[0, 1], [2, 3]], [[4], []]]
    assert [shown(element) for element in found[3]] == [[[0, 1], [2, 3], [4]]]


def test_one_replica_gets_plain_elements() -> None:
    batches = Dataset.range(3).batch(2)
    assert tf.distribute.get_strategy().experimental_distribute_dataset(batches) is batches
    for strategy in (tf.distribute.OneDeviceStrategy("CPU:0"), mirrored(1)):
        iterator: Any = iter(strategy.experimental_distribute_dataset(batches))
        assert shown(iterator.get_next()) == [0, 1]
        assert shown(next(iterator)) == [2]
        with pytest.raises(tf.errors.OutOfRangeError):
            iterator.get_next()


def of_worker() -> Any:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()

    def all_of(dataset: Any) -> Any:
        return [shown(element) for element in strategy.experimental_distribute_dataset(dataset)]

    off = tf.data.Options()
    off.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    own = strategy.distribute_datasets_from_function(
        lambda context: Dataset.range(3 + 2 * context.input_pipeline_id).batch(2)
    )
    shared = [all_of(Dataset.range(9).batch(4)), all_of(Dataset.range(6).batch(3))]
    return [*shared, all_of(Dataset.range(4).batch(2).with_options(off)), [shown(element) for element in own]]


WORKERS = [
    [[[[0, 1]], [[4, 5]], [[8]]], [[[0, 1]], [[3, 4]]], [[[0]], [[1]], [[2]], [[3]]], [[[0, 1]], [[2]], [[]]]],
    [[[[2, 3]], [[6, 7]], [[]]], [[[2]], [[5]]], [[[0]], [[1]], [[2]], [[3]]], [[[0, 1]], [[2, 3]], [[4]]]],
]


def test_workers_share_batches_and_end_together() -> None:
    assert collshim.launch(of_worker, 2, timeout=200) == WORKERS


@pytest.mark.parametrize("policy", ["OFF", "HINT"])
def test_workers_take_unshared_rows_in_the_sizes_of_the_replicas(policy: str) -> None:
    def worker() -> tuple[Any, int]:
        options = tf.data.Options()
        options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy[policy]
        batches = Dataset.range(8).batch(3).with_options(options)
        found = tf.distribute.MultiWorkerMirroredStrategy().experimental_distribute_dataset(batches)
        return [shown(element)[0] for element in found], int(found.cardinality)

    assert collshim.launch(worker, 2, timeout=200) == [
        ([[0, 1], [2], [3, 4], [5], [6, 7], []], 3),
        ([[0], [1, 2], [3], [4, 5], [6], [7]], 3),
    ]


def test_worker_without_elements_is_refused() -> None:
    def worker() -> str:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
        own = strategy.distribute_datasets_from_function(
            lambda context: Dataset.range(1 - context.input_pipeline_id).batch(1)
        )
        if collshim.current().rank == 0:
            return str(shown(next(iter(own))))
        with pytest.raises(ValueError, match="the dataset of this process has no element"):
            next(iter(own))
        return "refused"

    assert collshim.launch(worker, 2, timeout=200) == ["[[0]]", "refused"]


def spec(shape: Any, dtype: Any) -> Any:
    return tf.TensorSpec(shape, dtype)


DESCRIBED: dict[str, tuple[Callable[[], Any], Any]] = {
    "range": (lambda: Dataset.range(3), spec((), tf.int64)),
    "slices": (
        lambda: Dataset.from_tensor_slices({"a": [1.0], "b": [[1, 2]]}),
        {"a": spec((), tf.float32), "b": spec((2,), tf.int32)},
    ),
    "tensors": (lambda: Dataset.from_tensors(([1.0], [1.0])), (spec((1,), tf.float32),) * 2),
    "batch": (lambda: Dataset.range(3).batch(2).repeat(), spec((None,), tf.int64)),
    "drop": (lambda: Dataset.range(4).batch(2, drop_remainder=True).take(1), spec((2,), tf.int64)),
    "unbatch": (lambda: Dataset.range(4).batch(2).unbatch(), spec((), tf.int64)),
    "map": (
        lambda: Dataset.range(3).map(lambda x: (x, tf.cast(x, tf.float32))),
        (spec((), tf.int64), spec((), tf.float32)),
    ),
    "map of batches": (lambda: Dataset.range(3).batch(2).map(lambda x: x * 2), spec((None,), tf.int64)),
    "zip": (lambda: Dataset.zip((Dataset.range(2), Dataset.range(2))), (spec((), tf.int64),) * 2),
    "enumerate": (lambda: Dataset.range(3).enumerate(), (spec((), tf.int64),) * 2),
    "generator": (lambda: Dataset.from_generator(list, tf.float32, tf.TensorShape([4])), spec((4,), tf.float32)),
}


@pytest.mark.parametrize("name", DESCRIBED)
def test_element_spec_describes_the_elements(name: str) -> None:
    make, wanted = DESCRIBED[name]
    assert make().element_spec == wanted
    assert iter(make()).element_spec == wanted


def test_element_spec_of_replicas_describes_their_parts() -> None:
    strategy, rows = mirrored(2), Dataset.from_tensor_slices([[1.0]] * 8)
    found = strategy.experimental_distribute_dataset(rows.batch(4, drop_remainder=True)).element_spec
    one = "TensorSpec(shape=(2, 1), dtype=tf.float32, name=None)"
    assert repr(found) == f"PerReplicaSpec({one}, {one})"
    found = strategy.distribute_datasets_from_function(lambda _: rows.batch(4)).element_spec
    assert repr(found) == f"PerReplicaSpec({one}, {one})".replace("(2, 1)", "(None, 1)")
    assert mirrored(1).experimental_distribute_dataset(rows.batch(4)).element_spec == spec((None, 1), tf.float32)


def test_generator_gives_elements_of_the_described_dtypes() -> None:
    signature = (spec((), tf.int32), spec((2,), tf.float32))
    made = Dataset.from_generator(lambda n: ((i, np.ones(2)) for i in range(n)), args=(2,), output_signature=signature)
    assert [shown(element) for element in made] == [(0, [1.0, 1.0]), (1, [1.0, 1.0])]
    assert made.element_spec == signature
    assert int(made.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    parts = next(iter(mirrored(2).experimental_distribute_dataset(Dataset.from_generator(lambda: [[1, 2]], tf.int64))))
    assert shown(parts) == [[1], [2]]


def test_generator_is_refused_if_its_elements_differ() -> None:
    with pytest.raises(TypeError, match=r"^`generator` must be a Python callable.$"):
        Dataset.from_generator(3, tf.int32)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^To specify the output signature you need to provide either"):
        Dataset.from_generator(list)
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"of shape \(2,\) where an element of shape \(\) was exp"):
        list(Dataset.from_generator(lambda: [[1, 2]], output_signature=spec((), tf.int32)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="did not match the expected structure"):
        list(Dataset.from_generator(lambda: [1], output_types=(tf.int32, tf.int32)))


def test_functions_that_make_no_dataset_are_refused() -> None:
    with pytest.raises(TypeError, match=r"^`transformation_func` must return a `tf\.data\.Dataset` object"):
        Dataset.range(2).apply(lambda _: 3)
    with pytest.raises(TypeError, match=r"^The `map_func` argument must return a `Dataset` object"):
        list(Dataset.range(2).flat_map(lambda x: x))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^cycle_length must be greater than zero\.$"):
        Dataset.range(2).interleave(lambda x: Dataset.range(x), cycle_length=0)
