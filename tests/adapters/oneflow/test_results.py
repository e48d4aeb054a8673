"""Results particular to oneflow.comm: what they allow, and what OneFlow's CPU does not support."""

from __future__ import annotations

from typing import Any

import pytest

import collshim.oneflow as flow
from tests.adapters.conftest import each_of

comm: Any = flow.comm  # calls that the types forbid are tested too


@pytest.mark.ranks(2)
def test_all_gather_entry_with_gradient_can_be_written() -> None:
    tensor_list: list[Any] = [None, None]
    comm.all_gather(tensor_list, flow.ones(2, requires_grad=True))
    tensor_list[0].mul_(3)
    assert [entry.tolist() for entry in tensor_list] == [[3.0, 3.0], [1.0, 1.0]]


@pytest.mark.ranks(2)
def test_leaf_output_stays_a_leaf_without_gradient_path() -> None:
    tensor_out = flow.zeros(4, requires_grad=True)
    comm.all_gather_into_tensor(tensor_out, flow.ones(2, requires_grad=True))
    assert (tensor_out.is_leaf, tensor_out.requires_grad, tensor_out.tolist()) == (True, True, [1.0] * 4)


@each_of(2, gives=[[1, 2, 3], [4, 5]])
def test_scatter_tensor_takes_the_shape_of_its_part() -> Any:
    tensor = flow.zeros(2, dtype=flow.int64)
    comm.scatter(tensor, [flow.tensor([1, 2, 3]), flow.tensor([4, 5])] if flow.env.get_rank() == 0 else None)
    return tensor.tolist()


@each_of(2, gives=[[1, 101], [11, 111]])
def test_all_to_all_accepts_one_list_for_both_arguments() -> Any:
    here = flow.env.get_rank()
    tensors = [flow.tensor([100 * here + 1]), flow.tensor([100 * here + 11])]
    comm.all_to_all(tensors, tensors)
    return [int(tensor) for tensor in tensors]


@pytest.mark.ranks(2)
def test_float16_is_summed() -> None:
    tensor = flow.tensor([1.5, 2.0], dtype=flow.float16) + flow.env.get_rank()
    comm.all_reduce(tensor)
    assert (tensor.tolist(), tensor.dtype) == ([4.0, 5.0], flow.float16)
