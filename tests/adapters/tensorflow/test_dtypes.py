"""The dtypes that several replicas must not exchange: refused exactly if TensorFlow refuses them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import Run, context, mirrored, replica

RunMany = Callable[[int, Callable[[], Any]], "list[Any]"]

NEITHER = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.complex64, torch.complex128]
OPS = [tf.distribute.NcclAllReduce(), tf.distribute.HierarchicalCopyAllReduce(), tf.distribute.ReductionToOneDevice()]


def gathered(value: Any) -> Any:
    return context().all_gather(value, axis=0)


def reduced(value: Any, op: str = "SUM") -> Any:
    return context().all_reduce(op, value)


@pytest.mark.parametrize("dtype", [np.int8, np.bool_])
def test_numpy_arrays_follow_the_same_dtype_rules(run_two: Run, dtype: Any) -> None:
    with pytest.raises(TypeError, match="not in list of allowed values"):
        run_two(lambda: gathered(np.ones(2, dtype)))
    with pytest.raises(tf.errors.InvalidArgumentError, match="not in the list of allowed values"):
        run_two(lambda: reduced(np.ones(2, dtype)))


@pytest.mark.parametrize("collective", [gathered, reduced])
def test_error_shows_the_rank_and_the_shape(run_two: Run, collective: Callable[[Any], Any]) -> None:
    with pytest.raises(collshim.ArgumentError, match=r"\(rank [01] of 2, shape \[3, 1\]\)$"):
        run_two(lambda: collective(torch.ones(3, 1, dtype=torch.int8)))


@pytest.mark.parametrize("collective", [gathered, reduced])
def test_nest_is_refused_before_any_leaf_is_sent(run_two: Run, collective: Callable[[Any], Any]) -> None:
    """Replica 0 gets an error for the nest that replica 1 never gives; their next calls match."""

    def fn() -> Any:
        if replica() == 0:
            with pytest.raises(collshim.ArgumentError, match="allowed values"):
                collective([torch.zeros(1), torch.ones(1, dtype=torch.int8)])
        return collective(torch.tensor([replica() + 1.0]))

    for result in run_two(fn):
        assert result.sum().item() == 3.0


@pytest.mark.parametrize("ops", OPS, ids=lambda ops: type(ops).__name__)
@pytest.mark.parametrize("dtype", [*NEITHER, torch.bfloat16])
def test_cross_device_ops_gather_every_dtype(ops: tf.distribute.CrossDeviceOps, dtype: torch.dtype) -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"], cross_device_ops=ops)
    results = strategy.run(lambda: gathered(torch.tensor([replica(), 1]).to(dtype)))
    for result in strategy.experimental_local_results(results):
        assert torch.equal(result, torch.tensor([0, 1, 1, 1]).to(dtype))


@pytest.mark.parametrize("ops", OPS, ids=lambda ops: type(ops).__name__)
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.complex64])
def test_cross_device_ops_reduce_other_dtypes(ops: tf.distribute.CrossDeviceOps, dtype: torch.dtype) -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"], cross_device_ops=ops)
    results = strategy.run(lambda: reduced(torch.tensor([replica(), 1]).to(dtype)))
    for result in strategy.experimental_local_results(results):
        assert torch.equal(result, torch.tensor([1, 2]).to(dtype))


def test_rows_of_slices_may_have_any_dtype(run_two: Run) -> None:
    rows = torch.ones(1, 2, dtype=torch.int8)
    for result in run_two(lambda: reduced(tf.IndexedSlices(rows, torch.tensor([replica()])))):
        assert result.values.dtype is torch.int8
        assert result.indices.tolist() == [0, 1]


def value_of(strategy: tf.distribute.Strategy, *dtypes: torch.dtype) -> Any:
    """Return ``[1]`` on the first replica, ``[2]`` on the second, with the given dtypes in turn."""
    return strategy.experimental_distribute_values_from_function(
        lambda ctx: torch.tensor([ctx.replica_id_in_sync_group + 1]).to(
            dtypes[ctx.replica_id_in_sync_group % len(dtypes)]
        )
    )


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.bfloat16, torch.complex64])
def test_mirrored_replicas_reduce_but_do_not_gather(dtype: torch.dtype) -> None:
    strategy = mirrored(2)
    value = value_of(strategy, dtype)
    assert strategy.reduce("SUM", value, axis=None).tolist() == [3]
    with pytest.raises(TypeError, match=r"^gather: Value passed to parameter 'input' has DataType \w+ not in list"):
        strategy.gather(value, axis=0)
    assert strategy.gather(torch.ones(1, dtype=dtype), axis=0).dtype is dtype


def test_mirrored_replicas_refuse_bool() -> None:
    strategy = mirrored(2)
    value = value_of(strategy, torch.bool)
    for op in ("SUM", "MEAN"):
        with pytest.raises(tf.errors.InvalidArgumentError, match="Value for attr 'T' of bool is not in the list"):
            strategy.reduce(op, value, axis=None)
    with pytest.raises(TypeError, match="DataType bool not in list of allowed values"):
        strategy.gather(value, axis=0)
    with pytest.raises(TypeError, match="DataType bool not in list of allowed values"):
        strategy.reduce("SUM", value, axis=0)


def on_two_workers(call: Callable[[tf.distribute.Strategy], Any]) -> Any:
    try:
        return collshim.launch(lambda: call(tf.distribute.MultiWorkerMirroredStrategy()), 2, timeout=200)
    except collshim.RankError as error:
        raise error.exception or error from None


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.complex64])
def test_workers_refuse_these_dtypes(dtype: torch.dtype) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"^reduce: Value for attr 'T' of .* is not in the list"):
        on_two_workers(lambda strategy: strategy.reduce("SUM", torch.ones(1).to(dtype), axis=None))
    with pytest.raises(TypeError, match=r"^gather: Value passed to parameter 'input' has DataType .* not in list"):
        on_two_workers(lambda strategy: strategy.gather(torch.ones(1).to(dtype), axis=0))


@pytest.mark.parametrize("ops", OPS, ids=lambda ops: type(ops).__name__)
def test_cross_device_ops_join_but_do_not_add_bool(ops: tf.distribute.CrossDeviceOps) -> None:
    strategy = tf.distribute.MirroredStrategy(["GPU:0", "GPU:1"], cross_device_ops=ops)
    value = value_of(strategy, torch.bool)
    assert strategy.gather(value, axis=0).tolist() == [True, True]
    with pytest.raises(tf.errors.InvalidArgumentError, match="Value for attr 'T' of bool"):
        ops.reduce(tf.distribute.ReduceOp.SUM, value, "CPU:0")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Value for attr 'T' of bool"):
        strategy.run(lambda: reduced(torch.tensor([True])))


def test_single_component_is_reduced_in_any_dtype() -> None:
    ops, strategy = tf.distribute.ReductionToOneDevice(), mirrored(1)
    assert ops.reduce(tf.distribute.ReduceOp.MEAN, value_of(strategy, torch.bool), "CPU:0").tolist() == [True]
    assert strategy.gather(value_of(strategy, torch.int8), axis=0).dtype is torch.int8


@pytest.mark.parametrize("other", [torch.int32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize(
    ("call", "operation"),
    [
        (lambda s, value: s.reduce("SUM", value, axis=None), "AddN"),
        (lambda s, value: s.reduce("MEAN", value, axis=0), "AddN"),
        (lambda s, value: s.extended.reduce_to("SUM", value, value), "AddN"),
        (lambda s, value: OPS[0].reduce(tf.distribute.ReduceOp.SUM, value, "CPU:0"), "AddN"),
    ],
)
def test_different_component_dtypes_are_not_promoted(call: Any, operation: str, other: torch.dtype) -> None:
    strategy = mirrored(2)
    said = (
        rf"cannot compute {operation} as input #1\(zero-based\) was expected to be a float tensor but is a \w+ tensor"
    )
    for kind in (tf.errors.InvalidArgumentError, collshim.MismatchError):
        with pytest.raises(kind, match=said):
            call(strategy, value_of(strategy, torch.float32, other))


@pytest.mark.parametrize("other", [torch.int32, torch.float64])
def test_different_component_dtypes_are_not_joined(other: torch.dtype) -> None:
    strategy = mirrored(2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot compute ConcatV2 as input #1"):
        strategy.gather(value_of(strategy, torch.float32, other), axis=0)


def test_different_slice_dtypes_are_not_joined() -> None:
    strategy = mirrored(2)
    value = strategy.experimental_distribute_values_from_function(
        lambda ctx: tf.IndexedSlices(
            torch.ones(1, 1, dtype=[torch.float32, torch.float64][ctx.replica_id_in_sync_group]), torch.tensor([0])
        )
    )
    with pytest.raises(tf.errors.InvalidArgumentError, match="cannot compute ConcatV2"):
        strategy.reduce("SUM", value, axis=None)
