"""A tensor passed twice, and ``return_ids``, in ``grad`` and ``value_and_grad``: as in MindSpore 2.10.0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from collshim import mindspore as ms
from collshim.mindspore import Parameter, Tensor

pytestmark = pytest.mark.unranked

X = Tensor(np.array([1.0, 2.0, 3.0], np.float32))
Y = Tensor(np.array([2.0, 0.5, -1.0], np.float32))
THREE_SQUARES = [3.0, 12.0, 27.0]


def cubed(first: Any, second: Any) -> Any:
    return (first * first * second).sum()


def listed(value: Any) -> Any:
    return tuple(map(listed, value)) if isinstance(value, tuple) else getattr(value, "tolist", lambda: value)()


@pytest.mark.parametrize("tensor", [X, Parameter(X, name="p")])
@pytest.mark.parametrize(
    ("positions", "expected"), [(0, THREE_SQUARES), (1, THREE_SQUARES), ((0, 1), (THREE_SQUARES, THREE_SQUARES))]
)
def test_a_tensor_passed_twice_has_one_gradient(tensor: Any, positions: Any, expected: Any) -> None:
    assert listed(ms.grad(cubed, positions)(tensor, tensor)) == expected
    assert listed(ms.value_and_grad(cubed, positions)(tensor, tensor)) == (36.0, expected)


def test_a_parameter_can_be_an_argument_and_a_weight() -> None:
    weight = Parameter(X, name="p")
    found = ms.grad(lambda a: (a * a * weight).sum(), 0, [weight])(weight)
    assert listed(found) == (THREE_SQUARES, (THREE_SQUARES,))


def test_a_parameter_that_is_not_trained_has_a_gradient_as_an_argument() -> None:
    assert listed(ms.grad(cubed)(Parameter(X, requires_grad=False), Y)) == [4.0, 2.0, -6.0]


def test_gradients_have_the_positions_of_arguments() -> None:
    of_x, of_y = [4.0, 2.0, -6.0], [1.0, 4.0, 9.0]
    assert listed(ms.grad(cubed, 0, return_ids=True)(X, Y)) == (0, of_x)
    assert listed(ms.grad(cubed, (0,), return_ids=True)(X, Y)) == (0, of_x)
    assert listed(ms.grad(cubed, (0, 1), return_ids=True)(X, Y)) == ((0, of_x), (1, of_y))
    assert listed(ms.value_and_grad(cubed, 0, None, False, True)(X, Y)) == (-5.0, (0, of_x))


def test_gradients_have_the_names_of_parameters() -> None:
    p, q = Parameter(X, name="p"), Parameter(Y, name="q")

    def loss(a: Any) -> Any:
        return (a * p * q).sum()

    of_a, of_p, of_q = [2.0, 1.0, -3.0], [4.0, 0.25, 1.0], [2.0, 1.0, -3.0]
    assert listed(ms.grad(loss, 0, [p, q], return_ids=True)(Y)) == ((0, of_a), (("p", of_p), ("q", of_q)))
    assert listed(ms.grad(loss, None, [p, q], return_ids=True)(Y)) == (("p", of_p), ("q", of_q))
    assert listed(ms.grad(loss, None, p, return_ids=True)(Y)) == ("p", of_p)


@pytest.mark.parametrize("positions", [0, (0,), None])
def test_get_grad_finds_a_gradient(positions: Any) -> None:
    p, q = Parameter(X, name="p"), Parameter(Y, name="q")
    found = ms.grad(lambda a: (a * p).sum(), positions, [p], return_ids=True)(Y)
    assert listed(ms.get_grad(found, p)) == listed(Y)
    if positions is not None:
        assert listed(ms.get_grad(found, 0)) == listed(X)
    for missing in (1, q):
        with pytest.raises(RuntimeError, match="no gradient for the position or parameter"):
            ms.get_grad(found, missing)


def test_return_ids_is_a_bool() -> None:
    with pytest.raises(TypeError, match="return_ids should be a bool, but got 1"):
        ms.grad(cubed, return_ids=1)  # type: ignore[arg-type]
