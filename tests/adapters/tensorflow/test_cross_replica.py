"""Calls across replicas: reduce, gather, local results, values from a function, and ``extended``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored

On = Callable[[Callable[[tf.distribute.Strategy], Any]], Any]


def values(strategy: tf.distribute.Strategy, make: Callable[[int], Any]) -> Any:
    return strategy.experimental_distribute_values_from_function(lambda ctx: make(ctx.replica_id_in_sync_group))


def on_mirrored(fn: Callable[[tf.distribute.Strategy], Any]) -> Any:
    return fn(mirrored(2))


def on_workers(fn: Callable[[tf.distribute.Strategy], Any]) -> Any:
    """Return the result of the workers, which must agree."""
    try:
        first, second = collshim.launch(lambda: fn(tf.distribute.MultiWorkerMirroredStrategy()), 2, timeout=200)
    except collshim.RankError as error:
        raise error.exception or error from None
    assert repr(first) == repr(second)
    return first


@pytest.fixture(params=[on_mirrored, on_workers], ids=["mirrored", "workers"])
def on(request: pytest.FixtureRequest) -> On:
    """Return a function that calls another with a strategy of two replicas, on each of its processes."""
    found: On = request.param
    return found


@pytest.mark.parametrize(
    ("op", "axis", "wanted"),
    [
        ("MEAN", (0,), 1.25),
        ("SUM", (), [1.0, 4.0]),
        ("SUM", False, 5.0),
        ("SUM", (np.int64(0),), 5.0),
    ],
)
def test_reduce_axis_has_other_spellings(on: On, op: str, axis: Any, wanted: Any) -> None:
    result = on(lambda s: s.reduce(op, values(s, lambda i: torch.tensor([float(i), 2.0])), axis=axis))
    assert result.tolist() == wanted


@pytest.mark.parametrize("dtype", ["uint16", "uint32", "uint64"])
@pytest.mark.parametrize(("op", "axis", "wanted"), [("SUM", None, [4, 6]), ("SUM", 0, 10), ("MEAN", 0, 2.5)])
def test_unsigned_integers_are_reduced_in_one_process(dtype: str, op: str, axis: Any, wanted: Any) -> None:
    strategy, large = mirrored(2), tf.constant(np.array([2, 3], dtype))
    found = strategy.reduce(op, values(strategy, lambda _: tf.identity(large)), axis=axis)
    assert found.tolist() == wanted
    assert found.dtype is (large.dtype if op == "SUM" else torch.float32 if dtype == "uint16" else torch.float64)


def test_reduced_rows_of_slices_are_a_tensor() -> None:
    strategy = mirrored(2)
    rows = values(strategy, lambda i: tf.IndexedSlices(tf.constant([[1.0 + i]]), tf.constant([i]), tf.constant([3, 1])))
    found = strategy.reduce("SUM", rows, axis=0)
    assert (type(found), found.tolist()) == (tf.Tensor, [3.0])


def test_a_list_with_an_axis_is_one_tensor(on: On) -> None:
    def pair(strategy: Any) -> list[Any]:
        return [values(strategy, lambda i: tf.constant([1.0 + i, 2.0])) for _ in range(2)]

    assert on(lambda s: s.reduce("SUM", pair(s), axis=0)).tolist() == [6.0, 8.0]
    assert on(lambda s: s.reduce("SUM", pair(s), axis=1)).tolist() == [7.0, 7.0]
    with pytest.raises(ValueError, match="expects each tensor to be equal size"):
        on(lambda s: s.reduce("SUM", [*pair(s), tf.constant(1.0)], axis=0))


def test_nests_and_numpy_arrays_are_reduced(on: On) -> None:
    result = on(lambda s: s.reduce("SUM", {"a": values(s, lambda i: np.array([i, 2]))}, axis=None))
    assert isinstance(result["a"], tf.Tensor)
    assert result["a"].tolist() == [1, 4]
    assert on(lambda s: s.reduce("SUM", values(s, lambda i: np.float32(i)), axis=None)).numpy() == 1
    assert isinstance(on(lambda s: s.gather(values(s, lambda i: np.array([i])), axis=0)), tf.Tensor)


def test_mirrored_value_is_its_own_mean_and_has_no_sum(on: On) -> None:
    def mirrored_value(strategy: Any) -> Any:
        with strategy.scope():
            return tf.Variable([1.0, 2.0])

    assert on(lambda s: tf.convert_to_tensor(s.reduce("MEAN", mirrored_value(s), axis=None))).tolist() == [1.0, 2.0]
    with pytest.raises(AssertionError, match="value is Mirrored"):
        on(lambda s: s.reduce("SUM", mirrored_value(s), axis=None))


def test_plain_value_belongs_to_each_worker() -> None:
    plain = torch.tensor([1.0, 2.0])
    assert on_workers(lambda s: s.reduce("SUM", plain, axis=None)).tolist() == [2.0, 4.0]
    assert on_workers(lambda s: s.gather(plain, axis=0)).tolist() == [1.0, 2.0, 1.0, 2.0]
    assert on_workers(lambda s: s.reduce("SUM", 1, axis=None)).item() == 2


def test_plain_value_is_the_same_on_mirrored_replicas() -> None:
    strategy, plain = mirrored(2), torch.tensor([1.0, 2.0])
    assert strategy.reduce("MEAN", plain, axis=None).tolist() == [1.0, 2.0]
    assert strategy.gather(plain, axis=0).tolist() == [1.0, 2.0]
    with pytest.raises(
        ValueError,
        match=r"^A non-DistributedValues value 1 cannot be reduced with the given reduce op ReduceOp\.SUM\.$",
    ):
        strategy.reduce("SUM", 1, axis=None)


@pytest.mark.parametrize(
    "strategy", [mirrored(1), tf.distribute.OneDeviceStrategy("CPU:0"), tf.distribute.get_strategy()]
)
def test_one_replica_reduce_and_gather_return_copies(strategy: tf.distribute.Strategy) -> None:
    plain = torch.tensor([1, 2], dtype=torch.int32)
    for result in (strategy.reduce("MEAN", plain, axis=None), strategy.gather(plain, axis=-7)):
        assert result.dtype is torch.int32
        result.fill_(0)
    assert plain.tolist() == [1, 2]
    assert strategy.reduce("MEAN", torch.tensor([1, 2]), axis=0).item() == 1.5


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda s, v: s.reduce("prod", v, axis=None), ValueError, "^'PROD' is not a valid ReduceOp$"),
        (lambda s, v: s.reduce("SUM", v, axis="x"), TypeError, "axis is 'x'"),
        (lambda s, v: s.reduce("SUM", v, axis=[0]), TypeError, r"axis is \[0\]"),
        (lambda s, v: s.reduce("SUM", v, axis=(0, 0)), tf.errors.InvalidArgumentError, r"\(0, 0\) names a dimension"),
        (lambda s, v: s.reduce("MEAN", v, axis=(0, -1)), tf.errors.InvalidArgumentError, "names a dimension twice"),
        (lambda s, v: s.reduce("SUM", v, axis=np.int64(0)), TypeError, r"axis is np.int64\(0\)"),
        (lambda s, v: s.reduce("SUM", v, axis=5), tf.errors.InvalidArgumentError, "Invalid reduction dimension 5"),
        (lambda s, v: s.reduce("SUM", v), TypeError, "missing 1 required positional argument: 'axis'"),
        (lambda s, v: s.gather(v, axis=-1), ValueError, "Requires start <= limit when delta > 0: 0/-1"),
        (lambda s, v: v + 1, TypeError, r"unsupported operand type\(s\) for \+: 'PerReplica' and 'int'"),
    ],
)
def test_wrong_arguments_are_refused(on: On, call: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        on(lambda s: call(s, values(s, lambda i: torch.ones(2))))


@pytest.mark.parametrize("call", ["reduce", "gather"])
def test_different_shapes_are_an_invalid_argument(on: On, call: str) -> None:
    def fn(strategy: tf.distribute.Strategy) -> Any:
        value = values(strategy, lambda i: torch.ones(1, i + 1))
        return strategy.gather(value, axis=0) if call == "gather" else strategy.reduce("SUM", value, axis=None)

    with pytest.raises(tf.errors.InvalidArgumentError, match="Shape mismatch in the collective"):
        on(fn)


def slices(strategy: tf.distribute.Strategy) -> Any:
    return values(strategy, lambda i: tf.IndexedSlices(torch.full((1, 2), float(i)), torch.tensor([i])))


def test_slices_are_reduced_but_not_gathered(on: On) -> None:
    rows = on(lambda s: s.reduce("SUM", slices(s), axis=None).values.tolist())
    assert rows == [[0.0, 0.0], [1.0, 1.0]]
    with pytest.raises(NotImplementedError, match="gather does not support IndexedSlices"):
        on(lambda s: s.gather(slices(s), axis=0))


def test_reduce_to_places_the_result_at_the_destination() -> None:
    strategy = mirrored(2)
    value = values(strategy, lambda i: torch.tensor([float(i), 2.0]))
    everywhere = strategy.extended.reduce_to("SUM", value, value)
    assert [part.tolist() for part in everywhere.values] == [[1.0, 4.0]] * 2
    assert repr(everywhere).startswith("Mirrored:{\n  0: tensor(")
    assert strategy.extended.reduce_to("MEAN", value, "/cpu:0").tolist() == [0.5, 2.0]
    assert strategy.reduce("MEAN", everywhere, axis=None).tolist() == [1.0, 4.0]
    with pytest.raises(AssertionError):
        strategy.reduce("SUM", everywhere, axis=None)
    both = strategy.extended.batch_reduce_to("SUM", [(value, value), (value, "/cpu:0")])
    assert [type(one).__name__ for one in both] == ["Mirrored", "Tensor"]


@pytest.mark.parametrize(
    ("destinations", "kind", "said"),
    [
        ([], AssertionError, "not be a list or tuple"),
        ("", ValueError, "^destinations can not be empty$"),
        (3, ValueError, "^destinations must be one of a `DistributedValues` object"),
    ],
)
def test_reduce_to_needs_a_destination(destinations: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        mirrored(2).extended.reduce_to("MEAN", torch.ones(1), destinations)


@pytest.mark.parametrize("destinations", ["cpu:0", "a value"])
def test_mean_of_a_mirrored_value_is_the_value(destinations: str) -> None:
    strategy = mirrored(2)
    value = values(strategy, lambda i: torch.tensor([float(i)]))
    place = destinations if destinations == "cpu:0" else value
    plain = torch.tensor([5.0])
    result = strategy.extended.reduce_to("MEAN", plain, place)
    assert result.tolist() == [5.0]
    assert result is not plain
    assert strategy.extended.reduce_to("MEAN", 5, place) == 5
    everywhere = strategy.extended.reduce_to("SUM", value, value)
    mean = strategy.extended.reduce_to("MEAN", everywhere, place)
    assert [type(mean).__name__, *(part.tolist() for part in mean.values)] == ["Mirrored", [1.0], [1.0]]
    assert strategy.gather(everywhere, axis=0).tolist() == [1.0, 1.0]


def test_default_strategy_has_no_devices() -> None:
    with pytest.raises(
        RuntimeError, match=r"^worker_devices\(\) method unsupported by default tf\.distribute\.Strategy\.$"
    ):
        _ = tf.distribute.get_strategy().extended.worker_devices


@pytest.mark.parametrize(
    "ops",
    [tf.distribute.NcclAllReduce(), tf.distribute.HierarchicalCopyAllReduce(2), tf.distribute.ReductionToOneDevice()],
)
def test_cross_device_ops_reduce_and_broadcast_the_components(ops: tf.distribute.CrossDeviceOps) -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"], cross_device_ops=ops)
    value = values(strategy, lambda i: torch.tensor([i + 1.0]))
    total = ops.reduce(tf.distribute.ReduceOp.SUM, value, destinations=value)
    assert [part.tolist() for part in total.values] == [[3.0], [3.0]]
    assert ops.batch_reduce(tf.distribute.ReduceOp.MEAN, [(value, "CPU:0")])[0].tolist() == [1.5]
    assert [part.tolist() for part in ops.broadcast(torch.ones(1), value).values] == [[1.0], [1.0]]


SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN


def test_cross_device_ops_convert_numbers_to_tensors() -> None:
    ops, strategy = tf.distribute.ReductionToOneDevice(), mirrored(2)
    numbers = values(strategy, lambda i: i + 1)
    for result, wanted, dtype in (
        (ops.reduce(SUM, 5, "cpu:0"), 5, torch.int32),
        (ops.reduce(MEAN, 5, "cpu:0"), 5, torch.int32),
        (ops.reduce(MEAN, 5.5, numbers), 5.5, torch.float32),
        (ops.reduce(SUM, [1, 2], "cpu:0"), [1, 2], torch.int32),
        (ops.reduce(SUM, numbers, "cpu:0"), 3, torch.int32),
        (ops.reduce(MEAN, numbers, "cpu:0"), 1.5, torch.float64),
        (ops.broadcast(5, "cpu:0"), 5, torch.int32),
    ):
        assert result.tolist() == wanted
        assert result.dtype is dtype
    everywhere = ops.broadcast(5, numbers)
    assert [type(everywhere).__name__, *(part.item() for part in everywhere.values)] == ["Mirrored", 5, 5]
    assert ops.batch_reduce(SUM, []) == []


@pytest.mark.parametrize("value", ["a", None, {1}])
def test_cross_device_ops_refuse_non_tensors(value: Any) -> None:
    ops = tf.distribute.ReductionToOneDevice()
    with pytest.raises(ValueError, match="unsupported type"):
        ops.reduce(SUM, value, "cpu:0")
    with pytest.raises(ValueError, match="unsupported type"):
        ops.broadcast(value, "cpu:0")


def test_slices_and_arrays_are_not_reduced_together() -> None:
    strategy = mirrored(2)
    value = values(strategy, lambda i: [tf.IndexedSlices(torch.ones(1, 1), torch.tensor([0])), torch.ones(1, 1)][i])
    with pytest.raises(ValueError, match="should all have IndexedSlices or none"):
        strategy.reduce("SUM", value, axis=None)


def test_cross_device_ops_refuse_unsupported_calls() -> None:
    with pytest.raises(ValueError, match=r"^NCCL all-reduce requires num_packs >= 0, but -1 is specified$"):
        tf.distribute.NcclAllReduce(-1)
    wrong: Any = "SUM"
    with pytest.raises(ValueError, match=r"^`reduce_op` must be Reduce\.SUM or Reduce\.MEAN\.$"):
        tf.distribute.NcclAllReduce().reduce(wrong, torch.ones(1), "CPU:0")
    with pytest.raises(TypeError, match="cross_device_ops is 'SUM'"):
        tf.distribute.MirroredStrategy(["GPU:0"], cross_device_ops=wrong)


def test_pairs_that_are_no_tuples_are_refused() -> None:
    strategy = mirrored(2)
    value = values(strategy, float)
    with pytest.raises(ValueError, match="Each element of `value_destination_pairs` should be a tuple"):
        tf.distribute.ReductionToOneDevice().batch_reduce(tf.distribute.ReduceOp.SUM, [value])
