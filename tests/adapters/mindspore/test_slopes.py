"""Gradients at bounds, of equal numbers and at 0, as recorded with MindSpore 2.10.0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import collshim.mindspore as ms
from collshim.mindspore import Parameter, Tensor, mint, nn, ops

pytestmark = pytest.mark.unranked

NAN = float("nan")
E = [[1.0, 1.0, 2.0], [2.0, 2.0, 0.0]]
LOGITS = [[0.0, 1.0, 2.0], [-3.0, 0.5, -0.5]]
NOT_PROBABILITIES = [[0.2, 0.3, 0.9], [0.6, 0.5, 0.1]]


def slope(of: Callable[..., Any], *inputs: Any, position: int = 0) -> Any:
    return ms.grad(of, position)(*(Tensor(np.array(each, np.float32)) for each in inputs)).asnumpy()


@pytest.mark.parametrize(
    ("of", "at", "expected"),
    [
        (ops.relu6, [0.0, 6.0, 7.0], [0, 1, 0]),
        (nn.ReLU6(), [0.0, 6.0, 7.0], [0, 1, 0]),
        (ops.hardswish, [-3.0, 3.0, 4.0], [-0.5, 1.5, 1]),
        (nn.HSwish(), [-3.0, 3.0, 4.0], [-0.5, 1.5, 1]),
        (mint.nn.functional.hardswish, [-3.0, 3.0, 4.0], [-0.5, 1.5, 1]),
        (nn.Hardtanh(), [-1.0, 0.0, 1.0, 2.0], [0.5, 1, 0.5, 0]),
        (nn.LeakyReLU(), [0.0, 1.0, -1.0], [0.6, 1, 0.2]),
        (nn.LeakyReLU(3.0), [0.0, 1.0, -1.0], [2, 1, 3]),
        (lambda x: ops.clip_by_value(x, -0.5, 0.5), [-0.5, 0.0, 0.5, 1.0], [0.5, 1, 0.5, 0]),
        (lambda x: x.max(axis=1), E, [[0, 0, 1], [1, 0, 0]]),
        (lambda x: x.min(axis=1), E, [[1, 0, 0], [0, 0, 1]]),
        (lambda x: ops.norm(x, float("inf")), [2.0, -2.0, 1.0], [1, 0, 0]),
        (ops.norm, [0.0, 0.0], [NAN, NAN]),
        (lambda x: x.norm(), [0.0, 0.0], [NAN, NAN]),
        (ops.std, [1.0, 1.0], [NAN, NAN]),
        (lambda x: x // 2, [1.0, 3.0], [0, 0]),
        (lambda x: 5 // x, [1.0, 3.0], [0, 0]),
        (lambda x: 5 % x, [2.0, 3.0], [-2, -1]),
        (lambda x: mint.floor_divide(x, 2.0), [1.0, 3.0], [0, 0]),
        (lambda x: mint.remainder(5.0, x), [2.0, 3.0], [-2, -1]),
    ],
)
def test_a_derivative_at_a_corner_is_mindspores(of: Any, at: Any, expected: Any) -> None:
    np.testing.assert_allclose(slope(of, at), expected, rtol=1e-6)


@pytest.mark.parametrize(
    "loss", [nn.SoftmaxCrossEntropyWithLogits(), lambda x, y: ops.SoftmaxCrossEntropyWithLogits()(x, y)[0]]
)
def test_the_cross_entropy_of_labels_that_do_not_add_up_to_1(loss: Any) -> None:
    probabilities = np.exp(LOGITS) / np.exp(LOGITS).sum(-1, keepdims=True)
    np.testing.assert_allclose(slope(loss, LOGITS, NOT_PROBABILITIES), probabilities - NOT_PROBABILITIES, atol=1e-6)
    np.testing.assert_allclose(slope(loss, LOGITS, NOT_PROBABILITIES, position=1), 0)


def test_labels_of_a_divergence_have_no_gradient() -> None:
    np.testing.assert_allclose(slope(nn.KLDivLoss(), LOGITS, NOT_PROBABILITIES, position=1), 0)


def test_a_product_of_matrices_has_the_slopes_of_the_method() -> None:
    left, right = np.ones((2, 3)), np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(slope(ops.dot, left, right), [[1, 5, 9], [1, 5, 9]])


@pytest.mark.parametrize("convert", [lambda x: Tensor(x), lambda x: ms.tensor(x, ms.float16)])
def test_gradients_flow_through_a_copy_of_a_tensor(convert: Any) -> None:
    np.testing.assert_allclose(slope(lambda x: convert(x * 3) * 2, [1.0, 2.0]), [6, 6])


def test_gradients_flow_through_the_value_of_a_parameter() -> None:
    weight = Parameter(Tensor([1.0, 2.0]), name="weight")
    found = ms.grad(lambda x: weight.value() * x, None, weight)(Tensor([3.0, 4.0]))
    np.testing.assert_allclose(found.asnumpy(), [3, 4])
    np.testing.assert_allclose(ms.grad(lambda x: Tensor(weight) * x, None, weight)(Tensor([3.0, 4.0])).asnumpy(), 0)


def test_a_second_derivative_that_is_zero_can_be_read() -> None:
    np.testing.assert_allclose(slope(ms.grad(ops.abs), [1.0, -2.0]), [0, 0])


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda: ops.clip_by_norm(Tensor([-1.0, 0.5, 2.0]), 1.0, 1.0), [-0.6666663, 0.3333331, 1.3333325]),
        (lambda: ops.clip_by_norm(Tensor([3.0, 4.0]), 1.0), [0.6, 0.8]),
        (lambda: ops.clip_by_norm(Tensor([3.0, -4.0]), 1.0, float("inf")), [0.75, -1]),
        (lambda: ops.clip_by_norm(Tensor([1, 2, 3], ms.int32), 1.0, 1), [0.1666667, 0.3333333, 0.5]),
        (lambda: ops.clip_by_value(Tensor([1, 2, 3], ms.int32), 1.5, 2.5), [1, 2, 2]),
    ],
)
def test_values_are_clipped_as_in_mindspore(compute: Any, expected: Any) -> None:
    np.testing.assert_allclose(compute().asnumpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: ops.clip_by_norm((), 1.0), ValueError),
        (lambda: ops.clip_by_norm((Tensor([1.0]), Tensor([1.0], ms.float16)), 1.0), TypeError),
        (lambda: ops.clip_by_global_norm((Tensor([1.0]),), 0.0), ValueError),
        (lambda: ops.clip_by_global_norm((), 1.0), ValueError),
        (lambda: ops.clip_by_global_norm(5, 1.0), TypeError),
        (lambda: ops.clip_by_value(5, 1.0, 2.0), TypeError),
        (lambda: ops.dot(Tensor([1.0]), Tensor([1.0])), ValueError),
        (lambda: ops.cross_entropy(Tensor([[1.0, 2.0]]), Tensor([5], ms.int32)), RuntimeError),
    ],
)
def test_wrong_arguments_are_refused(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()
