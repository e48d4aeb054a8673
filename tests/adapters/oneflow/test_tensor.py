"""flow.Tensor: torch's with OneFlow 0.9.0's attributes and defaults; modules with such parameters."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import collshim.oneflow as flow


@pytest.fixture
def trained() -> Any:
    return flow.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)


def test_numpy_accepts_a_tensor_that_requires_grad(trained: Any) -> None:
    assert trained.numpy().tolist() == (trained * 1).numpy().tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert np.asarray(trained).tolist() == trained.tolist()


def test_numpy_shares_memory() -> None:
    tensor = flow.tensor([1.0, 2.0])
    array = tensor.numpy()
    tensor.add_(1)
    assert array.tolist() == [2.0, 3.0]


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_softmax_uses_the_last_dimension(trained: Any, name: str) -> None:
    wanted = getattr(torch, name)(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), -1).tolist()
    found = getattr(trained, name)(), getattr(flow, name)(trained), getattr(flow.nn.functional, name)(trained)
    assert [tensor.tolist() for tensor in found] == [wanted] * 3


# Printed by OneFlow 0.9.0, except for the name of a node.
SHOWN = [
    (lambda: flow.tensor([1, 2]), "tensor([1, 2], dtype=oneflow.int64)"),
    (lambda: flow.tensor(3.0), "tensor(3., dtype=oneflow.float32)"),
    (lambda: flow.tensor([True]), "tensor([True], dtype=oneflow.bool)"),
    (lambda: flow.tensor([[1.0], [2.0]]), "tensor([[1.],\n        [2.]], dtype=oneflow.float32)"),
    (lambda: flow.zeros(2, dtype=flow.float64), "tensor([0., 0.], dtype=oneflow.float64)"),
    (
        lambda: flow.nn.Parameter(flow.Tensor([1, 1])),
        "tensor([1., 1.], dtype=oneflow.float32, requires_grad=True)",
    ),
    (
        lambda: flow.tensor([1.0], requires_grad=True) * 2,
        "tensor([2.], dtype=oneflow.float32, grad_fn=<MulBackward0>)",
    ),
]


@pytest.mark.parametrize(("make", "text"), SHOWN)
def test_tensor_repr_matches_oneflow(make: Any, text: str) -> None:
    assert repr(make()) == str(make()) == text


@pytest.mark.parametrize(
    ("dtype", "name"), [("float32", "FloatTensor"), ("int64", "LongTensor"), ("bool", "BoolTensor")]
)
def test_type_is_oneflow_tensor(dtype: str, name: str) -> None:
    assert flow.zeros(1, dtype=getattr(flow, dtype)).type() == f"oneflow.{name}"


def test_every_tensor_is_local() -> None:
    tensor = flow.ones(2)
    assert (tensor.is_local, tensor.is_global, tensor.is_lazy, tensor.is_eager) == (True, False, False, True)


def test_array_can_be_copied_into_a_tensor() -> None:
    tensor = flow.zeros(2)
    copied: Any = tensor.copy_
    assert copied(np.array([1.0, 2.0], np.float32)) is None
    assert tensor.tolist() == [1.0, 2.0]


def test_gradient_is_one_oneflow_tensor(trained: Any) -> None:
    trained.sum().backward()
    assert type(trained.grad) is flow.Tensor
    assert trained.grad is trained.grad
    trained.grad = None
    assert trained.grad is None


def test_modified_torch_tensor_stays_a_torch_tensor() -> None:
    theirs = torch.zeros(2)
    assert theirs.add_(flow.ones(2)) is theirs
    assert type(theirs) is torch.Tensor


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_tensor_can_be_copied_and_pickled(copied: Any) -> None:
    tensor = copied(flow.tensor([1.0, 2.0]))
    assert (type(tensor), tensor.tolist()) == (flow.Tensor, [1.0, 2.0])


def test_tensor_of_a_tensor_owns_its_memory() -> None:
    first = flow.tensor([1.0])
    second = flow.tensor(first)
    first.zero_()
    assert second.tolist() == [1.0]


def test_tensors_share_memory_with_torch() -> None:
    tensor = flow.ones(2)
    theirs = flow.utils.tensor.to_torch(tensor)
    flow.utils.tensor.from_torch(theirs).zero_()
    assert type(theirs) is torch.Tensor
    assert tensor.tolist() == [0.0, 0.0]


class Net(flow.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = flow.nn.Linear(2, 3)
        self.scale = flow.nn.Parameter(flow.ones(3))
        self.norm = flow.nn.BatchNorm1d(3)

    def forward(self, x: Any) -> Any:
        return self.norm(self.first(x)) * self.scale


def test_module_parameters_and_buffers_are_oneflow_tensors() -> None:
    net = Net()
    assert {type(one) for one in net.parameters()} == {flow.nn.Parameter}
    assert {type(one) for one in net.buffers()} == {flow.Tensor}
    assert type(net.first.weight.numpy()) is np.ndarray


def test_parameter_set_on_a_module_keeps_its_identity() -> None:
    net, weight = Net(), flow.nn.Parameter(flow.zeros(3))
    net.scale = weight
    assert net.scale is weight
    assert isinstance(weight, torch.nn.Parameter)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_module_can_be_copied_and_pickled(copied: Any) -> None:
    net = Net()
    again = copied(net)
    assert type(again.first) is flow.nn.Linear
    assert again.first.weight.numpy().tolist() == net.first.weight.numpy().tolist()
    assert type(again.first.weight) is type(net.first.weight)


@pytest.mark.parametrize("kind", ["Linear", "Conv2d", "Sequential", "LSTM", "RNNBase", "Module"])
def test_modules_are_instances_of_torch_classes(kind: str) -> None:
    modules = [flow.nn.Linear(1, 1), flow.nn.Conv2d(1, 1, 1), flow.nn.Sequential(), flow.nn.LSTM(1, 1)]
    ours, theirs = getattr(flow.nn, kind), getattr(torch.nn, kind)
    assert [isinstance(module, ours) for module in modules] == [isinstance(module, theirs) for module in modules]


def test_zero_grad_sets_zeros() -> None:
    net = flow.nn.Linear(2, 1)
    net(flow.ones(1, 2)).sum().backward()
    net.zero_grad()
    assert net.weight.grad.tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ((3,), [[1, 0, 0], [0, 0, 1]]),
        ((), [[1, 0, 0], [0, 0, 1]]),
        ((4, 5, -1), [[5, -1, -1, -1], [-1, -1, 5, -1]]),
        ((3, 0.5, 0.25), [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5]]),
    ],
)
def test_one_hot_takes_on_and_off_values(arguments: Any, wanted: Any) -> None:
    found = flow._C.one_hot(flow.tensor([0, 2]), *arguments)
    assert found.tolist() == wanted
    assert found.dtype == (flow.int64 if isinstance(wanted[0][0], int) else flow.float32)


def test_cross_entropy_is_not_reduced(trained: Any) -> None:
    dense = flow._C.softmax_cross_entropy(trained, flow.tensor([[0.0, 1.0], [1.0, 0.0]]))
    sparse = flow._C.sparse_softmax_cross_entropy(trained, flow.tensor([1, 0]))
    assert [round(value, 4) for value in dense.tolist()] == [0.3133, 1.3133]  # as OneFlow 0.9.0 prints them
    assert [round(value, 4) for value in sparse.tolist()] == [0.3133, 1.3133]


def test_loader_batches_are_oneflow_tensors() -> None:
    samples: Any = [(np.float32(1), 2), (np.float32(3), 4)]
    loader = flow.utils.data.DataLoader(samples, batch_size=2)
    assert [[type(part) for part in batch] for batch in loader] == [[flow.Tensor, flow.Tensor]]


def test_where_takes_one_dtype_and_is_a_method_of_the_condition() -> None:
    condition: Any = flow.tensor([True, False])
    x = flow.tensor([1.0, 2.0])
    assert condition.where(x, x * 2).tolist() == flow.where(condition.int(), x=x, y=x * 2).tolist() == [1.0, 4.0]
    assert flow.where(condition, x, 0.5).dtype is flow.float64
    assert flow.where(condition, 2.5, 3.5).dtype is flow.float32
    assert condition.where()[0].tolist() == [0]


@pytest.mark.parametrize(
    ("x", "y", "kind"),
    [
        (lambda: flow.ones(2), lambda: 0, RuntimeError),
        (lambda: flow.ones(2), lambda: flow.tensor([1, 2]), RuntimeError),
        (lambda: 1, lambda: 2.5, NotImplementedError),
        (lambda: flow.ones(2), lambda: None, TypeError),
    ],
)
def test_where_refuses_different_dtypes(x: Any, y: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"where: x is .*, should be"):
        flow.where(flow.tensor([True, False]), x(), y())
