from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
import torch

import collshim
import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import Run, context, mirrored, replica

SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN


def reduced(op: Any, value: Any) -> Any:
    return context().all_reduce(op, value)


def test_numpy_arrays_give_tensors(run_two: Run) -> None:
    for result in run_two(lambda: reduced(MEAN, np.array([replica(), 3], np.int64))):
        assert isinstance(result, tf.Tensor)
        assert result.dtype == tf.float64
        assert result.tolist() == [0.5, 3.0]


@pytest.mark.parametrize("replicas", [1, 2])
def test_unknown_operations_are_refused(replicas: int) -> None:
    with pytest.raises(ValueError, match=r"^'MAX' is not a valid ReduceOp$"):
        mirrored(replicas).run(lambda: reduced("max", torch.ones(1)))
    with pytest.raises(AssertionError, match="reduce_op is 3"):
        mirrored(replicas).run(lambda: reduced(3, torch.ones(1)))


def test_options_must_be_communication_options(run_two: Run) -> None:
    wrong: Any = 60.0
    with pytest.raises(TypeError, match="options is a float"):
        run_two(lambda: context().all_reduce(SUM, torch.ones(1), wrong))


def slices(rows: int) -> tf.IndexedSlices:
    values = torch.full((rows, 2), replica() + 1.0)
    return tf.IndexedSlices(values, torch.arange(rows), torch.tensor([8, 2]))


def test_slices_sum_to_the_rows_of_all_replicas(run_two: Run) -> None:
    for result in run_two(lambda: reduced(SUM, slices(replica() + 1))):
        assert result.values.tolist() == [[1.0, 1.0], [2.0, 2.0], [2.0, 2.0]]
        assert result.indices.tolist() == [0, 0, 1]
        assert result.dense_shape.tolist() == [8, 2]


def test_slices_and_arrays_can_be_mixed(run_two: Run) -> None:
    for dense, sparse in run_two(lambda: reduced(SUM, [torch.ones(1), slices(1)])):
        assert dense.tolist() == [2.0]
        assert sparse.indices.tolist() == [0, 0]


def test_missing_replica_is_a_deadline_exceeded_error() -> None:
    options = tf.distribute.experimental.CommunicationOptions(timeout_seconds=0.2)
    gate = threading.Event()

    def reduce() -> Any:
        if replica() == 1:
            gate.wait(30)
            return None
        try:
            return context().all_reduce(SUM, torch.ones(1), options)
        finally:
            gate.set()

    with pytest.raises(tf.errors.DeadlineExceededError, match="rank 1") as caught:
        mirrored(2).run(reduce)
    assert isinstance(caught.value, collshim.DeadlineError)
