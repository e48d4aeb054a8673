"""Tensors, parameters, settings and gradients of ``collshim.mindspore``, beside NumPy."""

from __future__ import annotations

import copy
import importlib
from typing import Any

import numpy as np
import pytest
import torch

import collshim.mindspore as ms
from collshim.mindspore import Parameter, Tensor, nn
from collshim.mindspore.common.initializer import One, initializer
from tests.adapters.conftest import Refused, Run

pytestmark = pytest.mark.unranked


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.0, "Tensor(shape=[], dtype=Float32, value= 2)"),
        ([1, 2], "Tensor(shape=[2], dtype=Int64, value= [1, 2])"),
        ([1.0, 2.0], "Tensor(shape=[2], dtype=Float32, value= [ 1.00000000e+00,  2.00000000e+00])"),
        ([True], "Tensor(shape=[1], dtype=Bool, value= [ True])"),
        (1 / 3, "Tensor(shape=[], dtype=Float32, value= 0.333333)"),
        ([1 + 2j, -3 - 0.5j], "Tensor(shape=[2], dtype=Complex128, value= [1+2j, -3-0.5j])"),
        (np.array([6e4, np.nan], np.float16), "Tensor(shape=[2], dtype=Float16, value= [ 6.0000e+04,         nan])"),
        (torch.tensor([1.5, 3e10]).bfloat16(), "Tensor(shape=[2], dtype=BFloat16, value= [        1.5, 3.00648e+10])"),
        (np.array([-1e-300, 1]), "Tensor(shape=[2], dtype=Float64, value= [-1.00000000e-300,  1.00000000e+00])"),
        ([], "Tensor(shape=[0], dtype=Float32, value= )"),
        (np.zeros((2, 0), np.int8), "Tensor(shape=[2, 0], dtype=Int8, value=\n)"),
        (np.arange(2001), "Tensor(shape=[2001], dtype=Int64, value= [   0,    1,    2 ... 1998, 1999, 2000])"),
        (
            np.arange(14).reshape(1, 2, 7),
            "Tensor(shape=[1, 2, 7], dtype=Int64, value=\n[[[ 0,  1,  2 ...  4,  5,  6],\n"
            "  [ 7,  8,  9 ... 11, 12, 13]]])",
        ),
        (
            np.arange(7)[:, None],
            "Tensor(shape=[7, 1], dtype=Int64, value=\n[[0],\n [1],\n [2],\n ...\n [4],\n [5],\n [6]])",
        ),
        (
            np.arange(13) > 0,
            f"Tensor(shape=[13], dtype=Bool, value= [False{',  True' * 11}, \n  True])",
        ),
        (
            np.arange(24) % 2,
            f"Tensor(shape=[24], dtype=Int64, value= [{', '.join(['0, 1'] * 12)}\n ])",
        ),
    ],
)
def test_tensor_repr_matches_mindspore(value: Any, text: str) -> None:
    assert repr(Tensor(value)) == text


def test_parameter_repr_shows_name_without_values() -> None:
    parameter = Parameter(Tensor(np.ones((2, 3), np.float32)), name="weight")
    text = "Parameter (name=weight, shape=(2, 3), dtype=Float32, requires_grad=True)"
    assert (repr(parameter), str(parameter)) == (text, text)


def test_operations_on_tensors_return_tensors() -> None:
    tensor = Tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    assert type(tensor * 2 + torch.ones(3)) is Tensor
    assert type(Parameter(tensor) * 2) is Tensor
    assert [type(part) for part in tensor.split(2, axis=1)] == [Tensor, Tensor]


@pytest.mark.parametrize("call", ["+", "-", "*", "/", ">"])
def test_numpy_left_operand_returns_numpy(call: str) -> None:
    array, tensor = np.array([2.0, 3.0], np.float32), Tensor(np.array([1.0, 4.0], np.float32))
    found = eval(f"array {call} tensor", {"array": array, "tensor": tensor})
    assert type(found) is np.ndarray
    assert found.tolist() == eval(f"array {call} other", {"array": array, "other": tensor.asnumpy()}).tolist()
    assert type(np.exp(tensor)) is np.ndarray


def test_tensor_attributes_match_mindspore() -> None:
    tensor = Tensor(np.arange(6, dtype=np.float32).reshape(1, 2, 3))
    assert (str(tensor.shape), int(tensor.size), tensor.strides) == ("(1, 2, 3)", 6, (24, 12, 4))
    assert tensor.transpose(2, 0, 1).shape == (3, 1, 2)
    assert tensor.astype("int32").dtype is ms.int32
    assert isinstance(tensor.asnumpy(), np.ndarray)


def test_initializer_makes_a_tensor() -> None:
    assert Tensor(shape=(2,), dtype=ms.int32, init=One()).tolist() == [1, 1]
    assert initializer("zeros", [2, 1]).shape == (2, 1)


@pytest.mark.parametrize("path", ["collshim.mindspore", "collshim.mindspore.dtype", "collshim.mindspore.common.dtype"])
def test_dtypes_have_three_paths(path: str) -> None:
    module: Any = importlib.import_module(path) if not path.endswith("mindspore.dtype") else ms.dtype
    assert module.float16 is torch.float16


def test_set_data_casts_into_the_same_parameter() -> None:
    parameter = Parameter(np.zeros(2, np.float32), name="w")
    assert parameter.set_data(Tensor([1, 2])) is parameter
    assert (parameter.name, parameter.dtype, parameter.tolist()) == ("w", ms.float32, [1.0, 2.0])


def test_copied_parameter_is_independent() -> None:
    parameter = Parameter([1.0], name="w")
    other = copy.deepcopy(parameter)
    other.set_data([2.0])
    assert (type(other), other.name, parameter.tolist()) == (Parameter, "w", [1.0])


class Scaled(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.weight = Parameter(np.full(2, 3, np.float32))
        self.fixed = Parameter(np.ones(2, np.float32), requires_grad=False)

    def construct(self, x: Tensor) -> Any:
        return x * self.weight + self.fixed


def test_cell_lists_its_parameters() -> None:
    cell, outer = Scaled(), nn.Cell()
    outer.inner = cell
    assert [*outer.parameters_dict()] == ["inner.weight", "inner.fixed"]
    assert [parameter.name for parameter in outer.trainable_params()] == ["inner.weight"]
    assert outer.set_train().training is cell.training is True


def test_value_and_grad_covers_arguments_and_weights() -> None:
    cell = Scaled()
    value, (of_x, (of_weight,)) = ms.value_and_grad(cell, 0, cell.trainable_params())(Tensor([1.0, 2.0]))
    assert (value.tolist(), of_x.tolist(), of_weight.tolist()) == ([4.0, 7.0], [3.0, 3.0], [1.0, 2.0])
    assert not value.requires_grad


def test_grad_of_unused_input_is_zero() -> None:
    assert ms.grad(lambda x, y: x * 2, 1)(Tensor([1.0]), Tensor([1.0])).tolist() == [0.0]


class Tripled(nn.Cell):
    def construct(self, x: Tensor) -> Any:
        return x

    def bprop(self, x: Tensor, out: Tensor, dout: Any) -> tuple[Any]:
        return (dout * 3,)


def test_cell_bprop_is_its_gradient() -> None:
    assert ms.grad(lambda x: Tripled()(x) * 2)(Tensor([1.0])).tolist() == [6.0]


@pytest.mark.parametrize(("mean", "wanted"), [(True, [1.5]), (False, [3.0])])
def test_gradient_reducer_follows_gradients_mean(run: Run, mean: bool, wanted: list[float]) -> None:
    def reduced() -> Any:
        ms.set_auto_parallel_context(parallel_mode="data_parallel", gradients_mean=mean)
        grads = (Tensor([1.0 + ms.communication.get_rank()]),)
        return nn.DistributedGradReducer([Parameter([0.0])])(grads)[0].tolist()

    assert run(reduced, 2) == [wanted, wanted]


def test_automatic_parallel_is_refused_at_a_cell_call(refused: Refused) -> None:
    ms.set_auto_parallel_context(parallel_mode=ms.ParallelMode.AUTO_PARALLEL)
    try:
        assert "data_parallel" in refused(NotImplementedError, lambda: Tripled()(Tensor([1.0])))
    finally:
        ms.reset_auto_parallel_context()
    assert ms.get_auto_parallel_context("parallel_mode") == "stand_alone"


@pytest.mark.parametrize(("target", "backend"), [("Ascend", "hccl"), ("GPU", "nccl"), ("CPU", "mccl")])
def test_init_takes_the_backend_of_the_device(target: str, backend: str) -> None:
    def named() -> str:
        ms.set_context(mode=ms.GRAPH_MODE, device_target=target)
        ms.communication.init()
        name: str = ms.communication.GlobalComm.BACKEND
        return name

    import collshim

    assert collshim.launch(named, 1, timeout=200) == [backend]
