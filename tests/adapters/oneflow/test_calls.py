"""Forms of arguments, operators and losses of single calls: as in OneFlow 0.9.0 on CPU."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from collshim import oneflow as flow
from collshim.oneflow.nn import functional

pytestmark = pytest.mark.unranked

X: Any = flow.tensor([[0.5, -1.25, 2.0], [3.5, -0.75, 0.25]])
Y: Any = flow.tensor([[1.5, 0.5, -2.0], [0.25, 1.0, 3.0]])
WHOLE: Any = flow.tensor([[1, -2, 3], [4, 0, -5]], dtype=flow.int32)
OTHER: Any = flow.tensor([[2, 3, -1], [1, 5, 2]], dtype=flow.int32)
BOOLEAN: Any = flow.tensor([[True, False, True], [False, False, True]])
CLASSES: Any = flow.tensor([0, 2])


def test_remainder_has_the_sign_of_the_dividend() -> None:
    assert (X % Y).tolist() == [[0.5, -0.25, 0.0], [0.0, -0.75, 0.25]]
    assert (WHOLE % 2).tolist() == [[1, 0, 1], [0, 0, -1]]


def test_quotient_of_integers_is_rounded_towards_zero() -> None:
    assert (WHOLE // OTHER).tolist() == flow.floor_divide(WHOLE, OTHER).tolist() == [[0, 0, -3], [4, 0, -2]]
    assert (WHOLE // 2.5).tolist() == [[0, -1, 1], [1, 0, -2]]
    assert (X // Y).tolist() == [[0, -3, -1], [14, -1, 0]]


def test_operators_of_bits_are_logical() -> None:
    assert (WHOLE & OTHER).tolist() == (2 & WHOLE).tolist() == (WHOLE != 0).tolist()
    assert (X | Y).dtype is (WHOLE ^ 2).dtype is flow.bool


@pytest.mark.parametrize(
    ("call", "values"),
    [
        (lambda: BOOLEAN - OTHER, [[-1, -3, 2], [-1, -5, -1]]),
        (lambda: BOOLEAN - 2, [[-1, -2, -1], [-2, -2, -1]]),
        (lambda: BOOLEAN - True, [[0, -1, 0], [-1, -1, 0]]),
        (lambda: X - True, [[-0.5, -2.25, 1.0], [2.5, -1.75, -0.75]]),
        (lambda: True - X, [[0.5, 2.25, -1.0], [-2.5, 1.75, 0.75]]),
        (lambda: flow.sub(BOOLEAN, OTHER), [[-1, -3, 2], [-1, -5, -1]]),
        (lambda: X - Y, [[-1.0, -1.75, 4.0], [3.25, -1.75, -2.75]]),
        (lambda: X.sub(Y, alpha=2), [[-2.5, -2.25, 6.0], [3.0, -2.75, -5.75]]),
    ],
)
def test_differences_count_booleans(call: Callable[[], Any], values: Any) -> None:
    assert call().tolist() == values


@pytest.mark.parametrize("compare", [operator.eq, operator.ge, operator.gt, operator.le, operator.lt, operator.ne])
def test_numbers_come_in_both_places(compare: Callable[..., Any]) -> None:
    function = getattr(flow, compare.__name__)
    assert function(2, X).tolist() == compare(2, X).tolist()
    assert function(X, 2).tolist() == getattr(X, compare.__name__)(2).tolist() == compare(X, 2).tolist()


def test_logical_functions_take_numbers() -> None:
    assert flow.logical_and(X, 2).tolist() == X.logical_and(True).tolist() == (X != 0).tolist()


@pytest.mark.parametrize("place", [flow, None])
def test_axes_have_several_forms(place: Any) -> None:
    def call(name: str, *args: Any, **kwargs: Any) -> Any:
        return getattr(X, name)(*args, **kwargs) if place is None else getattr(place, name)(X, *args, **kwargs)

    assert call("flip", 0).tolist() == call("flip", [0]).tolist() == X.numpy()[::-1].tolist()
    assert call("flip", (0, 1)).tolist() == X.numpy()[::-1, ::-1].tolist()
    assert call("prod", (0, 1), keepdim=True).shape == (1, 1)
    assert call("prod").item() == call("prod", dim=(0, 1)).item() == 0.8203125
    assert call("all", ()).shape == call("any", ()).shape == call("argmax", keepdim=True).shape == ()
    assert call("norm", 1).item() == np.linalg.norm(X.numpy(), 1) == 4.0
    assert call("norm", 1, 0).tolist() == [4.0, 2.0, 2.25]


def test_dtypes_of_products_and_places() -> None:
    assert WHOLE.prod().dtype is flow.prod(WHOLE, 0).dtype is flow.int32
    assert BOOLEAN.argmax().item() == flow.argmax(BOOLEAN).item() == 0


def test_numpy_computes_from_the_left() -> None:
    product = X.numpy() * Y
    assert isinstance(product, np.ndarray)
    assert product.tolist() == (X * Y).tolist()


def test_numbers_are_formatted() -> None:
    assert f"{X.mean():.3f} {flow.tensor(3):.1f} {flow.tensor(0.25)} {flow.tensor(True)}" == "0.708 3.0 0.25 True"
    assert f"{flow.tensor([0.5])}" == "tensor([0.5000], dtype=oneflow.float32)"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{X:.3f}"


def test_empty_tensors_show_their_shape() -> None:
    assert repr(flow.zeros(0, 3)) == "tensor([], size=(0, 3), dtype=oneflow.float32)"


def test_type_takes_tensor_classes() -> None:
    assert WHOLE.type(flow.FloatTensor).dtype is flow.float32


@pytest.mark.parametrize("loss", [flow.nn.CrossEntropyLoss(), flow.nn.NLLLoss(), functional.cross_entropy])
def test_classes_may_be_int32(loss: Callable[..., Any]) -> None:
    assert loss(X, CLASSES.int()).item() == loss(X, CLASSES).item()


@pytest.mark.parametrize(
    ("loss", "value"),
    [
        (lambda: flow.nn.MSELoss("sum")(X, Y), 41.25),
        (lambda: functional.mse_loss(X, Y, "sum"), 41.25),
        (lambda: functional.l1_loss(X, Y, "sum"), 14.5),
        (lambda: functional.smooth_l1_loss(X, Y, 1.0, "sum"), 11.5),
        (lambda: flow.nn.CrossEntropyLoss(None, -100, "sum")(X, CLASSES), 5.034),
        (lambda: functional.cross_entropy(X, CLASSES, None, 0, "sum"), 3.302),
        (lambda: functional.binary_cross_entropy(X.sigmoid(), BOOLEAN.float(), None, "sum"), 5.345),
        (lambda: functional.binary_cross_entropy_with_logits(X, BOOLEAN.float(), None, None, "sum"), 5.345),
        (lambda: functional.kl_div(X, Y.softmax(1), False, "sum"), -1.61),
    ],
)
def test_losses_take_oneflow_s_order(loss: Callable[[], Any], value: float) -> None:
    assert loss().item() == pytest.approx(value, rel=1e-3)


def test_constructors_have_oneflow_s_defaults() -> None:
    assert flow.nn.RMSNorm(3).eps == 1e-5
    assert flow.nn.ConstantPad2d(1)(flow.ones(1, 1, 1)).sum().item() == 1
    assert flow.nn.Dropout(0.5, False, None).p == 0.5


@pytest.mark.parametrize("name", ["mod", "pow", "floordiv", "and", "or", "xor"])
def test_these_assignments_make_new_tensors(name: str) -> None:
    tensor = WHOLE.clone()
    found = getattr(operator, f"i{name}")(tensor, 2)
    assert found.tolist() == getattr(operator, f"__{name}__")(WHOLE, 2).tolist()
    assert tensor.tolist() == WHOLE.tolist()


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv"])
def test_these_assignments_write(name: str) -> None:
    tensor = X.clone()
    assert getattr(operator, f"i{name}")(tensor, 2) is tensor
    assert tensor.tolist() == getattr(operator, name)(X, 2).tolist()


@pytest.mark.parametrize("make", [flow.nn.Parameter, lambda values: values.clone().requires_grad_()])
@pytest.mark.parametrize("subtract", [operator.isub, flow.Tensor.sub_])
def test_a_tensor_is_subtracted_from_a_leaf_in_place(make: Callable[..., Any], subtract: Callable[..., Any]) -> None:
    leaf = make(X.clone())
    assert subtract(leaf, Y) is leaf
    assert leaf.tolist() == (X - Y).tolist()
    assert leaf.requires_grad


@pytest.mark.parametrize("name", ["iadd", "imul", "itruediv"])
def test_other_assignments_to_a_leaf_are_refused(name: str) -> None:
    for leaf, operation, other in ((flow.nn.Parameter(X.clone()), name, Y), (flow.nn.Parameter(X.clone()), "isub", 1)):
        with pytest.raises(RuntimeError, match="a leaf"):
            getattr(operator, operation)(leaf, other)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv"])
def test_assignments_to_a_leaf_write_without_gradients(name: str) -> None:
    leaf = kept = flow.nn.Parameter(X.clone())
    with flow.no_grad():
        leaf = getattr(operator, f"i{name}")(leaf, Y)
    assert leaf is kept
    assert leaf.tolist() == getattr(operator, name)(X, Y).tolist()
    assert leaf.requires_grad


def test_values_are_copied_into_a_leaf() -> None:
    leaf = flow.nn.Parameter(X.clone())
    for values in (Y, X.numpy()):
        assert leaf.copy_(values) is None
        assert leaf.tolist() == values.tolist()
    (leaf * leaf).sum().backward()
    assert leaf.grad.tolist() == (2 * X).tolist()
