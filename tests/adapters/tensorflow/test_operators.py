"""Operators with numbers, lists and arrays, open shapes and Jacobians match TensorFlow 2.21."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.tensorflow as tf


def test_shape_knows_what_is_unknown() -> None:
    partly, unknown = tf.TensorShape([None, 2]), tf.TensorShape(None)
    assert (partly.as_list(), partly.is_fully_defined(), partly.num_elements(), repr(partly)) == (
        *([None, 2], False, None),
        "TensorShape([None, 2])",
    )
    assert (unknown.rank, repr(unknown), unknown.is_compatible_with([1])) == (None, "TensorShape(None)", True)
    assert [partly.merge_with([3, None]).as_list(), unknown.merge_with([1]).as_list()] == [[3, 2], [1]]


BESIDE: list[tuple[Callable[[Any, Any], Any], list[float], list[float]]] = [
    (operator.add, [4.0, 6.0], [4.0, 6.0]),
    (operator.sub, [-2.0, -2.0], [2.0, 2.0]),
    (operator.mul, [3.0, 8.0], [3.0, 8.0]),
    (operator.truediv, [1 / 3, 0.5], [3.0, 2.0]),
    (operator.floordiv, [0.0, 0.0], [3.0, 2.0]),
    (operator.mod, [1.0, 2.0], [0.0, 0.0]),
    (operator.pow, [1.0, 16.0], [3.0, 16.0]),
    (operator.lt, [1.0, 1.0], [0.0, 0.0]),
    (operator.ne, [1.0, 1.0], [1.0, 1.0]),
]


@pytest.mark.parametrize("beside", [[3, 4], [3.0, 4.0], np.array([3, 4]), np.array([3.0, 4.0], np.float16)], ids=repr)
@pytest.mark.parametrize(("compute", "before", "behind"), BESIDE)
@pytest.mark.parametrize("make", [tf.constant, tf.Variable])
def test_lists_and_arrays_take_the_dtype_of_the_tensor(
    make: Any, compute: Callable[[Any, Any], Any], before: list[float], behind: list[float], beside: Any
) -> None:
    x = make([1.0, 2.0])
    for found, wanted in ((compute(x, beside), before), (compute(beside, x), behind)):
        assert isinstance(found, tf.Tensor)
        assert found.dtype in (tf.float32, tf.bool)
        np.testing.assert_allclose(found.numpy().astype(float), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda: tf.constant([1, 2]) + 2.5, TypeError, "Cannot convert 2.5 to EagerTensor of dtype int32"),
        (lambda: tf.constant([1.0]) + None, ValueError, "Attempt to convert a value .None."),
        (lambda: tf.constant([1.0]) + "a", TypeError, "unsupported operand"),
        (lambda: list(tf.constant(1.0)), TypeError, "Cannot iterate over a scalar tensor"),
        (lambda: bool(tf.constant([1.0, 2.0])), ValueError, "more than one element is ambiguous"),
    ],
)
def test_invalid_operand_is_refused(call: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        call()


def test_numbers_returned_by_a_function_become_tensors() -> None:
    found, nothing = tf.function(lambda x: ([x + 1, np.float32(2)], None))(1)
    assert nothing is None
    assert [(type(one), one.dtype, float(one)) for one in found] == [
        (tf.Tensor, tf.int32, 2.0),
        (tf.Tensor, tf.float32, 2.0),
    ]


def test_jacobians_of_tensors_and_rows() -> None:
    x, w = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.Variable([1.0, 2.0])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y, z = x * x, w * w
    assert tape.jacobian(z, w).numpy().tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert tape.batch_jacobian(y, x).numpy().tolist() == [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
    assert tape.jacobian(y, x).shape == (2, 2, 2, 2)
    zero = tf.UnconnectedGradients.ZERO
    assert (tape.jacobian(y, w), tape.jacobian(z, x, zero).shape) == (None, (2, 2, 2))
    with pytest.raises(ValueError, match="must have rank at least 2"):
        tape.batch_jacobian(z, w)


@pytest.mark.parametrize("name", ["add", "sub", "mod", "pow", "lt", "ge", "neg", "abs", "matmul", "floordiv"])
def test_operators_of_numbers_refuse_booleans(name: str) -> None:
    booleans = tf.constant([[True]])
    others = [] if name in ("neg", "abs") else [booleans]
    with pytest.raises(tf.errors.InvalidArgumentError):
        getattr(operator, name)(booleans, *others)


def test_product_of_booleans_is_their_conjunction() -> None:
    assert (tf.constant([True, True]) * tf.constant([True, False])).tolist() == [True, False]


@pytest.mark.parametrize("function", [tf.add, tf.multiply, tf.maximum, tf.less, lambda x, y: tf.add_n([x, y])])
def test_functions_of_numbers_refuse_booleans(function: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="bool is not in the list of allowed values"):
        function(tf.constant([True]), tf.constant([False]))


@pytest.mark.parametrize("function", [tf.sqrt, tf.exp, tf.sin, tf.sigmoid, tf.math.log, tf.nn.softmax, tf.nn.elu])
@pytest.mark.parametrize("value", [[1, 2], [True, False]])
def test_functions_of_floats_refuse_integers_and_booleans(function: Any, value: Any) -> None:
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not in the list of allowed values"):
        function(tf.constant(value))
