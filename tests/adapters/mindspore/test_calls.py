"""Forms of arguments, dtypes of results, and classes of errors of single calls: as in MindSpore 2.10.0 on CPU."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from collshim import mindspore as ms
from collshim.mindspore import Parameter, Tensor, mint, nn, ops
from collshim.mindspore.dataset import vision

pytestmark = pytest.mark.unranked

X = Tensor(np.array([[0.5, -1.25, 2.0], [3.5, -0.75, 0.25]], np.float32))
WHOLE = Tensor(np.array([[1, -2, 3], [4, 0, -5]], np.int32))
BOOLEAN = Tensor(np.array([[True, False, True], [False, False, True]]))
COLUMNS = [4.0, -2.0, 2.25]


def listed(value: Any) -> Any:
    """Return tensors as lists, also in tuples, with their dtypes."""
    if isinstance(value, tuple):
        return tuple(map(listed, value))
    values = value.asnumpy()
    return str(values.dtype), (values.round(4) if values.dtype.kind == "f" else values).tolist()


@pytest.mark.parametrize(
    "call",
    [
        lambda: X.sum(0),
        lambda: X.sum(axis=0),
        lambda: X.sum(dim=0),
        lambda: X.sum(axis=(0,)),
        lambda: ops.sum(X, 0),
        lambda: ops.reduce_sum(X, 0),
        lambda: ops.ReduceSum()(X, 0),
        lambda: mint.sum(X, 0),
    ],
)
def test_axes_have_several_forms(call: Callable[[], Any]) -> None:
    assert call().asnumpy().tolist() == COLUMNS


@pytest.mark.parametrize("call", [X.sum, X.mean, X.prod, X.all, X.any, X.max, X.min])
def test_none_and_no_axes_mean_all_axes(call: Callable[..., Any]) -> None:
    assert call(None).shape == call(()).shape == call(axis=None).shape == ()


def test_all_axes_can_be_kept() -> None:
    assert X.sum(keepdims=True).shape == X.mean(keep_dims=True).shape == mint.sum(X, keepdim=True).shape == (1, 1)
    assert X.max(keepdims=True).shape == ops.argmax(X, None, True).shape == ()


@pytest.mark.parametrize("call", [ops.ReduceMax(), ops.reduce_max, lambda x, axis: x.max(axis=axis), ops.amax])
def test_axis_0_of_a_maximum_is_an_axis(call: Callable[..., Any]) -> None:
    assert call(X, 0).asnumpy().tolist() == [3.5, -0.75, 2.0]


@pytest.mark.parametrize(
    ("call", "dtype"),
    [
        (lambda: X.argmin(), "int32"),
        (lambda: X.argmax(), "int64"),
        (lambda: ops.argmin(X, 0), "int32"),
        (lambda: X.argsort(), "int32"),
        (lambda: ops.argsort(X), "int32"),
        (lambda: ops.sort(X)[1], "int32"),
        (lambda: ops.topk(X, 1)[1], "int32"),
        (lambda: X.cummin(axis=0)[1], "int32"),
        (lambda: WHOLE.cumsum(0), "int32"),
        (lambda: BOOLEAN.cumsum(0), "int32"),
        (lambda: WHOLE.sum(), "int64"),
        (lambda: WHOLE.mean(), "int32"),
        (lambda: WHOLE.std(), "float32"),
        (lambda: X.astype(float), "float64"),
        (lambda: X.astype("int"), "int64"),
        (lambda: ops.full((2,), 1.5), "int64"),
        (lambda: ops.add(2, 3), "int64"),
        (lambda: Parameter(1), "int32"),
        (lambda: Parameter(np.float64(1)), "float32"),
        (lambda: ~WHOLE, "bool"),
        (lambda: 2 - BOOLEAN, "int64"),
        (lambda: BOOLEAN - 1.5, "float32"),
        (lambda: BOOLEAN - WHOLE, "int32"),
        (lambda: BOOLEAN - BOOLEAN, "bool"),
    ],
)
def test_dtypes(call: Callable[[], Any], dtype: str) -> None:
    assert str(call().dtype) == f"torch.{dtype}"


def test_mean_of_integers_has_no_fraction() -> None:
    assert listed(WHOLE.mean(0)) == listed(ops.mean(WHOLE, 0)) == listed(mint.mean(WHOLE, 0)) == ("int32", [2, -1, -1])


@pytest.mark.parametrize("compare", [operator.ge, operator.gt, operator.le, operator.lt, operator.ne])
def test_numbers_come_in_both_places(compare: Callable[..., Any]) -> None:
    function = getattr(ops, compare.__name__)
    assert listed(function(2, X)) == listed(compare(2, X))
    assert listed(function(X, 2)) == listed(compare(X, 2))


def test_numbers_stand_for_tensors() -> None:
    tensor: Any = X
    assert listed(tensor.maximum(2)) == listed(mint.maximum(X, 2)) == listed(ops.maximum(X, Tensor(2)))
    assert listed(ops.atan2(X, 2)) == listed(tensor.atan2(2.0))
    assert listed(ops.logical_and(X, True)) == listed(tensor.logical_and(True)) == listed(X != 0)


def test_arguments_have_mindspore_s_names() -> None:
    assert listed(ops.norm(A=X)) == listed(X.norm())
    assert listed(ops.cumsum(X, 1, ms.float64)) == ("float64", [[0.5, -0.75, 1.25], [3.5, 2.75, 3.0]])
    assert listed(ops.addcmul(X, X, X, 0.5)) == listed(ops.addcmul(input=X, tensor1=X, tensor2=X, value=0.5))
    assert listed(ops.masked_fill(input_x=X, mask=BOOLEAN, value=0.0)) == listed(X.masked_fill(BOOLEAN, 0.0))
    with pytest.raises(TypeError, match="unexpected keyword"):
        ops.all(X, dim=0)


def test_norm_is_numpy_s() -> None:
    assert float(ops.norm(X, 1)) == float(X.norm(1)) == np.linalg.norm(X.asnumpy(), 1) == 4.0


def test_unique_keeps_the_order() -> None:
    assert listed(ops.unique(Tensor([1, 5, 2, 5], ms.int32))) == (("int32", [1, 5, 2]), ("int32", [0, 1, 2, 1]))


def test_squeeze_leaves_longer_axes() -> None:
    assert ops.squeeze(X, 0).shape == ops.Squeeze(1)(X).shape == X.squeeze(0).shape == (2, 3)


def test_clipping_several_tensors_returns_a_tuple() -> None:
    assert type(ops.clip_by_value([X], -1, 1)) is type(ops.clip_by_norm([X], 1.0)) is tuple
    assert listed(ops.clip_by_global_norm(X)) == listed(ops.clip_by_global_norm([X])[0])


def test_reversed_and_round() -> None:
    backwards: Any = list(reversed(X))
    assert [each.asnumpy().tolist() for each in backwards] == X.asnumpy()[::-1].tolist()
    assert listed(round(X)) == ("float32", [[0.0, -1.0, 2.0], [4.0, -1.0, 0.0]])


def test_set_data_takes_the_shape() -> None:
    parameter = Parameter(X, name="w")
    assert parameter.set_data(Tensor([1.0])) is parameter
    assert parameter.shape == (1,)


def test_set_dtype_changes_the_tensor() -> None:
    tensor = X.copy()
    assert tensor.set_dtype(ms.float16) is ms.float16
    assert (tensor.dtype, tensor.type()) == (ms.float16, "Float16")


def test_tensor_is_a_function_too() -> None:
    assert listed(ms.tensor([1, 2], dtype=ms.float32)) == ("float32", [1.0, 2.0])


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ValueError, lambda: X + Tensor(np.ones((2, 4), np.float32))),
        (ValueError, lambda: X.sum(5)),
        (ValueError, lambda: ops.matmul(X, X)),
        (ValueError, lambda: ops.cat([X, Tensor([1.0])])),
        (ValueError, lambda: ops.reshape(X, (4, 2))),
        (ValueError, lambda: bool(X)),
        (TypeError, lambda: ops.bitwise_and(X, X)),
        (TypeError, lambda: -BOOLEAN),
    ],
)
def test_errors_of_shapes_and_dtypes(error: type[Exception], call: Callable[[], Any]) -> None:
    with pytest.raises(error) as found:
        call()
    assert isinstance(found.value, IndexError | RuntimeError)  # torch's class


def test_other_errors_of_torch_stay() -> None:
    with pytest.raises(RuntimeError) as found:
        torch.linalg.inv(Tensor(np.zeros((2, 2), np.float32)))
    assert not isinstance(found.value, TypeError | ValueError)


def test_gradient_of_one_position_stands_alone() -> None:
    def product(first: Any, second: Any) -> Any:
        return (first * second).sum()

    assert listed(ms.grad(product, (1,))(X, X.copy())) == listed(X)
    assert listed(ms.grad(product, (0, 1))(X, X.copy())) == (listed(X), listed(X))


def test_gradients_of_gradients() -> None:
    def cubes(value: Any) -> Any:
        return (value**3).sum()

    second = ms.grad(lambda value: ms.grad(cubes)(value).sum())
    assert listed(second(X)) == listed(ms.grad(ms.grad(cubes))(X)) == listed(X * 6)
    assert listed(ms.grad(lambda value: ms.value_and_grad(cubes)(value)[0])(X)) == listed(X**2 * 3)
    weight = Parameter(Tensor(2.0), name="weight")
    outer = ms.grad(lambda value: ms.grad(lambda inner: weight * cubes(inner))(value).sum(), None, weight)
    assert float(outer(X)) == pytest.approx(float((X**2 * 3).sum()))


def test_schedules_take_numbers() -> None:
    for schedule in (nn.WarmUpLR(0.1, 4), nn.CosineDecayLR(0.01, 0.1, 4), nn.ExponentialDecayLR(0.1, 0.9, 4)):
        assert listed(schedule(2)) == listed(schedule(Tensor(2, ms.int32)))


def test_to_tensor_divides_any_dtype() -> None:
    assert vision.ToTensor()(np.full((1, 1, 1), 51.0, np.float32)).tolist() == [[[pytest.approx(0.2)]]]


def test_to_float_computes_in_a_dtype_and_leaves_parameters() -> None:
    net: Any = nn.SequentialCell(nn.Dense(3, 2, "ones", "zeros"), nn.BatchNorm1d(2), nn.ReLU()).to_float(ms.float16)
    assert net.set_train()(X).dtype is ms.float16
    assert {parameter.dtype for parameter in net.get_parameters()} == {ms.float32}
    assert float(net[1].moving_mean.sum()) != 0
    weights = ms.grad(lambda value: net[0](value).sum(), None, net[0].trainable_params())(X)
    assert listed(weights) == (("float32", [COLUMNS] * 2), ("float32", [2.0, 2.0]))
    assert nn.ReLU().to_float(ms.float16)(WHOLE).dtype is ms.int32
    net[0].to_float(ms.float32)
    assert net[0](X).dtype is ms.float32
    with pytest.raises(ValueError, match="dst_type"):
        net.to_float(ms.int32)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow"])
def test_assignments_with_operators_make_new_tensors(name: str) -> None:
    tensor: Any
    for tensor in (X.copy(), Parameter(X, name="w"), X.copy()[0]):
        before = tensor.asnumpy().copy()
        found = getattr(operator, f"i{name}")(tensor, 2)
        assert type(found) is Tensor
        assert listed(found) == listed(getattr(operator, name)(tensor, 2))
        assert tensor.asnumpy().tolist() == before.tolist()
    assert getattr(operator, f"i{name}")(WHOLE, 2.5).dtype is ms.float32


def test_assignments_with_operators_have_gradients() -> None:
    def squares(value: Any) -> Any:
        value += 1
        value *= value
        return value.sum()

    assert listed(ms.grad(squares)(X)) == listed((X + 1) * 2)


def test_entries_can_be_written() -> None:
    tensor: Any
    for tensor in (X.copy(), Parameter(X, name="w")):
        tensor[0] = [1, 2.5, True]
        tensor[1, 1:] = (7, 8)
        tensor[1, 0] = Tensor(9.0)
        assert tensor.asnumpy().tolist() == [[1.0, 2.5, 1.0], [9.0, 7.0, 8.0]]
