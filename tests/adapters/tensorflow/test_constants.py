"""``tf.constant`` and ``tf.identity``: what they make of Python values, arrays and distributed values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import collshim.tensorflow as tf
from tests.adapters.tensorflow.conftest import mirrored


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        ([1, 2, 3], torch.int32),
        (7, torch.int32),
        (2**40, torch.int64),
        ([1.0, 2.0], torch.float32),
        ([], torch.float32),
        ([True, False], torch.bool),
        (1j, torch.complex128),
        (np.array([1.0]), torch.float64),
        (torch.tensor([1]), torch.int64),
    ],
)
def test_dtypes_are_tensorflows(value: Any, dtype: torch.dtype) -> None:
    assert tf.constant(value).dtype is dtype


@pytest.mark.parametrize("dtype", [torch.float16, np.float16, np.dtype("float16"), "float16"])
def test_a_dtype_may_be_asked_for(dtype: Any) -> None:
    assert tf.constant([1, 2], dtype=dtype).dtype is torch.float16


def test_a_shape_may_be_asked_for() -> None:
    assert tf.constant(3, shape=(2, 2)).tolist() == [[3, 3], [3, 3]]
    assert tf.constant([1, 2, 3, 4], shape=[2, 2]).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"value": [[1], [1, 2]]}, ValueError, "non-rectangular"),
        ({"value": "text"}, ValueError, "unsupported type"),
        ({"value": None}, ValueError, "unsupported type"),
        ({"value": [1, 2, 3], "shape": (2,)}, ValueError, "3 elements, should have 2"),
        ({"value": 1, "dtype": "no dtype"}, TypeError, "dtype is 'no dtype'"),
    ],
)
def test_what_is_no_tensor_is_refused(given: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        tf.constant(**given)


@pytest.mark.parametrize("make", [tf.constant, tf.identity])
def test_arrays_are_copied(make: Any) -> None:
    array = np.zeros(2)
    make(array)[0] = 1.0
    assert array.tolist() == [0.0, 0.0]


def test_identity_keeps_the_kind_and_the_gradient() -> None:
    x = torch.ones(1, requires_grad=True)
    (3 * tf.identity(x)).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0]
    assert isinstance(tf.identity(np.ones(1)), np.ndarray)
    assert tf.identity([1, 2]).tolist() == [1, 2]


def test_identity_of_a_distributed_value_is_for_all_replicas() -> None:
    strategy = mirrored(2)
    value = strategy.experimental_distribute_values_from_function(lambda ctx: ctx.replica_id_in_sync_group)
    assert [one.item() for one in tf.identity(value).values] == [0, 1]
    with pytest.raises(
        ValueError, match=r"^Flattening a PerReplica to components is not supported in replica context\.$"
    ):
        strategy.run(lambda: tf.identity(value))
