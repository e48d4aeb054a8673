"""``tf.constant`` and ``tf.identity`` of Python values, arrays and distributed values."""

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
        ([1, 2.5], torch.float32),
        ([1, True], torch.int32),
        ([1.5, True], torch.float32),
        ([2**31, 1], torch.int64),
        ([np.array([1.5, 2.0])], torch.float64),
        ([np.float64(1), np.float32(2)], torch.float64),
        ([2.0, np.float64(1)], torch.float32),
        ((np.float16(1),), torch.float16),
        ([np.int8(1)], torch.int32),
        ([np.bool_(True), False], torch.bool),
        ([np.complex64(1), 1], torch.complex128),
        ([torch.ones(1, dtype=torch.bfloat16)], torch.float32),
        ([[], []], torch.float32),
        (range(3), torch.int32),
    ],
)
def test_dtypes_match_tensorflow(value: Any, dtype: torch.dtype) -> None:
    assert tf.constant(value).dtype is dtype


@pytest.mark.parametrize(
    ("value", "dtype", "wanted"),
    [
        (True, "int32", 1),
        ([True, 1], "int32", [1, 1]),
        (1.5, "complex64", 1.5),
        (300, "int8", 44),
        (2**40, "int32", 0),
        (1e300, "float32", float("inf")),
        (2**70, "float32", float(2**70)),
        (np.array([1.5]), "int32", [1]),
        (np.int64(5), "bool", True),
        ([], "bool", []),
    ],
)
def test_numbers_are_cast_to_the_requested_dtype(value: Any, dtype: str, wanted: Any) -> None:
    made = tf.constant(value, dtype=dtype)
    assert made.dtype is getattr(torch, dtype)
    assert made.tolist() == wanted


@pytest.mark.parametrize(("given", "wanted"), [(float, torch.float32), (bool, torch.bool)])
def test_python_types_are_dtypes(given: type, wanted: torch.dtype) -> None:
    assert tf.constant(True, dtype=given).dtype is wanted


@pytest.mark.parametrize("dtype", [torch.float16, np.float16, np.dtype("float16"), "float16"])
def test_dtype_can_be_requested(dtype: Any) -> None:
    assert tf.constant([1, 2], dtype=dtype).dtype is torch.float16


def test_shape_can_be_requested() -> None:
    assert tf.constant(3, shape=(2, 2)).tolist() == [[3, 3], [3, 3]]
    assert tf.constant([1, 2, 3, 4], shape=[2, 2]).tolist() == [[1, 2], [3, 4]]
    assert tf.constant(1, shape=3).tolist() == tf.constant([1], shape=np.int64(3)).tolist() == [1, 1, 1]
    assert tf.constant(1, shape=np.array([1, 2])).tolist() == [[1, 1]]
    assert tf.constant([], shape=(0, 3)).shape == (0, 3)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"value": [[1], [1, 2]]}, ValueError, "non-rectangular"),
        ({"value": ["text", 1]}, ValueError, "mixed types"),
        ({"value": ["a"], "dtype": "float32"}, TypeError, r"Cannot convert \['a'\] to EagerTensor of dtype float"),
        ({"value": None, "dtype": "float32"}, ValueError, "unsupported type"),
        ({"value": None}, ValueError, "unsupported type"),
        ({"value": [1, 2, 3], "shape": (2,)}, TypeError, r"has 3 elements, but got `shape` \(2,\) with 2 elements"),
        ({"value": [], "shape": 2}, TypeError, "has 0 elements"),
        ({"value": 1, "shape": (2, -1)}, ValueError, "Dimension -1 must be >= 0"),
        ({"value": 1, "shape": 2.5}, TypeError, "shape is 2.5"),
        ({"value": 1, "shape": "a"}, TypeError, "shape is 'a'"),
        ({"value": 1, "dtype": "no dtype"}, TypeError, "dtype is 'no dtype'"),
        ({"value": 1, "dtype": int}, TypeError, "dtype is <class 'int'>"),
        ({"value": 2.5, "dtype": torch.int32}, TypeError, "Cannot convert 2.5 to EagerTensor of dtype int32"),
        (
            {"value": [1.5, 2.0], "dtype": "int32"},
            TypeError,
            r"Cannot convert \[1.5, 2.0\] to EagerTensor of dtype int",
        ),
        ({"value": 1, "dtype": "bool"}, TypeError, "Cannot convert 1 to EagerTensor of dtype bool"),
        ({"value": [np.bool_(True)], "dtype": "int32"}, TypeError, "to EagerTensor of dtype int32"),
        ({"value": 1j, "dtype": "float32"}, TypeError, "Cannot convert 1j to EagerTensor of dtype float"),
        ({"value": [True, 1]}, ValueError, "mixed types"),
        ({"value": [1, 1j]}, ValueError, "mixed types"),
        ({"value": [1, np.bool_(True)]}, ValueError, "mixed types"),
        ({"value": [1, None]}, ValueError, "unsupported type"),
        ({"value": [1e300]}, ValueError, "out of range"),
        ({"value": [np.float16(1), 1e6]}, ValueError, "out of range"),
        ({"value": 2**63}, ValueError, "out-of-range integer"),
    ],
)
def test_non_tensor_is_refused(given: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        tf.constant(**given)


@pytest.mark.parametrize("make", [tf.constant, tf.identity])
def test_arrays_are_copied(make: Any) -> None:
    array = np.zeros(2)
    make(array)[0] = 1.0
    assert array.tolist() == [0.0, 0.0]


def test_identity_keeps_the_gradient() -> None:
    x = torch.ones(1, requires_grad=True)
    (3 * tf.identity(x)).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0]
    assert isinstance(tf.identity(np.ones(1)), tf.Tensor)
    assert tf.identity([1, 2]).tolist() == [1, 2]


def test_identity_of_a_distributed_value_covers_all_replicas() -> None:
    strategy = mirrored(2)
    value = strategy.experimental_distribute_values_from_function(lambda ctx: ctx.replica_id_in_sync_group)
    assert [one.item() for one in tf.identity(value).values] == [0, 1]
    with pytest.raises(
        ValueError, match=r"^Flattening a PerReplica to components is not supported in replica context\.$"
    ):
        strategy.run(lambda: tf.identity(value))
