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


untyped: Any = ms.grad  # calls that the types forbid are tested too
P = Parameter(X, name="p")
FROZEN = Parameter(X, name="frozen", requires_grad=False)
COUNTS = Parameter(Tensor([1, 2, 3], ms.int32), name="counts", requires_grad=False)


@pytest.mark.parametrize("still", [FROZEN, COUNTS])
def test_the_gradient_of_a_parameter_that_is_not_trained_is_zero(still: Any) -> None:
    found = ms.grad(lambda a: (a * P * still).sum(), None, [P, still])(Y)
    assert listed(found) == ([2.0, 1.0, -3.0], [0.0, 0.0, 0.0])
    assert found[1].dtype is still.dtype
    assert listed(ms.grad(lambda a: a * still, None, still)(Y)) == [0, 0, 0]


@pytest.mark.parametrize("nested", [lambda a: {"p": a, "q": a * 2}, lambda a: (a, [a, (a,)]), lambda a: [a * 3]])
def test_all_tensors_in_a_result_are_outputs(nested: Any) -> None:
    assert listed(ms.grad(nested)(X)) == [3.0, 3.0, 3.0]
    assert not any(each.requires_grad for each in ms.value_and_grad(lambda a: {"p": a * 2})(X)[0].values())


def test_integers_beside_floats_have_the_gradient_zero() -> None:
    places = Tensor([2, 0], ms.int32)
    of_x, of_places = ms.grad(ms.ops.gather, (0, 1))(X, places, 0)
    assert (listed(of_x), listed(of_places), of_places.dtype) == ([1.0, 0.0, 1.0], [0, 0], ms.int32)
    with pytest.raises(TypeError, match="by Int32 is not supported"):
        ms.grad(ms.ops.square)(places)


def test_an_argument_that_is_not_a_tensor_has_no_gradient() -> None:
    assert ms.grad(cubed)(2.0, Y) == ()
    assert listed(ms.grad(cubed, (0, 1))(X, 2.0)) == [4.0, 8.0, 12.0]


def test_arguments_passed_by_name_have_the_last_positions() -> None:
    assert listed(ms.grad(cubed)(first=X, second=Y)) == [4.0, 2.0, -6.0]
    assert listed(ms.grad(cubed, 1)(X, second=Y)) == [1.0, 4.0, 9.0]


def test_no_weights_have_no_gradients() -> None:
    assert ms.grad(cubed, None, [])(X, Y) == ()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: untyped(cubed, [0, 1]), TypeError),
        (lambda: untyped(cubed, 1.0), TypeError),
        (lambda: untyped(cubed, (0, "a")), TypeError),
        (lambda: ms.grad(cubed, (0, 0)), ValueError),
        (lambda: ms.grad(cubed, -1), ValueError),
        (lambda: ms.grad(cubed, ()), RuntimeError),
        (lambda: ms.grad(cubed, 2)(X, Y), RuntimeError),
        (lambda: untyped(cubed, has_aux=1), TypeError),
        (lambda: untyped(cubed, None, "w"), TypeError),
        (lambda: untyped(cubed, None, iter([P])), TypeError),
        (lambda: ms.grad(cubed, has_aux=True)(X, Y), ValueError),
        (lambda: ms.grad(lambda a: (a.sum(),), has_aux=True)(X), ValueError),
        (lambda: ms.grad(lambda a: (a.sum(), 3), has_aux=True)(X), RuntimeError),
        (lambda: ms.get_grad((0, X), "p"), TypeError),
    ],
)
def test_wrong_arguments_are_refused(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        call()


def test_grad_operation_returns_a_tuple_for_all_inputs() -> None:
    get_all = ms.ops.GradOperation(get_all=True)
    assert listed(get_all(lambda a: a * a)(X)) == ([2.0, 4.0, 6.0],)
    assert listed(get_all(lambda a, b: a * b)(X, 2.0)) == ([2.0, 2.0, 2.0],)
    both = ms.ops.GradOperation(get_all=True, get_by_list=True)
    assert listed(both(lambda a: a * P, P)(Y)) == (([1.0, 2.0, 3.0],), [2.0, 0.5, -1.0])


def test_the_gradient_of_a_number_can_be_a_number() -> None:
    given = ms.ops.GradOperation(sens_param=True)
    assert listed(given(lambda a: a.sum())(X, 2.0)) == [2.0, 2.0, 2.0]
    for wrong, error in ((2.0, RuntimeError), (Tensor([1.0]), ValueError)):
        with pytest.raises(error):
            given(lambda a: a * 2)(X, wrong)


def test_a_cell_refuses_too_few_gradients_of_its_own() -> None:
    class Own(ms.nn.Cell):
        def construct(self, a: Any, b: Any) -> Any:
            return a * b

        def bprop(self, a: Any, b: Any, out: Any, dout: Any) -> Any:
            return (dout,)

    with pytest.raises(RuntimeError, match="each of the 2 inputs, but got 1"):
        ms.grad(Own(), (0, 1))(X, Y)


def test_a_hook_changes_the_gradient_before_the_backward() -> None:
    cell = ms.nn.ReLU()
    cell.register_backward_pre_hook(lambda _, gradients: gradients[0] * 3)
    assert listed(ms.grad(cell)(X)) == [3.0, 3.0, 3.0]
