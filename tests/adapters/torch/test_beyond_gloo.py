"""Calls that torch documents and gloo refuses work; calls that gloo corrupts are errors."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.distributed import _make_nccl_premul_sum

import collshim.torch.distributed as dist
from tests.adapters.conftest import Refused, Run, each_of

UNASKED = ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "bfloat16")  # the suite omits them for NumPy
Op = dist.ReduceOp


@pytest.mark.parametrize("name", UNASKED)
def test_every_dtype_is_summed_and_moved(run: Run, name: str) -> None:
    dtype = getattr(torch, name)

    def rank() -> Any:
        mine = torch.tensor([1, dist.get_rank()]).to(dtype)
        gathered = [torch.zeros(2).to(dtype) for _ in range(2)]
        dist.gather(mine, gathered if dist.get_rank() == 0 else None, 0)
        dist.broadcast(moved := mine.clone(), 1)
        dist.all_reduce(mine)
        return [tensor.to(torch.complex64).real.tolist() for tensor in (mine, moved, *gathered)]

    assert run(rank, 2) == [[[2, 1], [1, 1], [1, 0], [1, 1]], [[2, 1], [1, 1], [0, 0], [0, 0]]]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        pytest.param(Op(Op.MAX), [2, 3], id="an object of max"),
        pytest.param(_make_nccl_premul_sum(2.0), [6, 10], id="sum after a product with a number"),
        pytest.param(_make_nccl_premul_sum(torch.tensor(2.0)), [6, 10], id="sum after a product with a tensor"),
    ],
)
def test_op_can_be_an_object(run: Run, op: Any, expected: list[float]) -> None:
    def rank() -> Any:
        mine = torch.arange(2.0) + 1 + dist.get_rank()
        scattered = torch.zeros(2)
        dist.reduce_scatter(scattered, [mine, mine], op)
        dist.all_reduce(mine, op)
        return scattered.tolist(), mine.tolist()

    assert run(rank, 2) == [(expected, expected)] * 2


@each_of(2, gives=[([[1, 1], [2, 2]], [2, 2]), ([[1, 1], [2, 2]], [4, 4])])
def test_input_can_be_part_of_the_output() -> Any:
    mine = dist.get_rank()
    whole = torch.zeros(2, 2)
    whole[mine] = 1.0 + mine
    dist.all_gather_single(whole, whole[mine])
    gathered = whole.tolist()
    dist.reduce_scatter_single(whole[mine], whole)
    return gathered, whole[mine].tolist()


@pytest.mark.ranks(2)
def test_complex_tensors_can_fill_real_pairs() -> None:
    gathered = [torch.zeros(1, 2) for _ in range(2)]
    dist.all_gather(gathered, torch.tensor([1 + dist.get_rank() * 1j], dtype=torch.complex64))
    assert [tensor.tolist() for tensor in gathered] == [[[1.0, 0.0]], [[1.0, 1.0]]]


@each_of(2, gives=[([4.0, 4.0], True, None), ([2.0, 2.0], True, None)])
def test_gradients_do_not_flow_and_leaves_are_written() -> Any:
    leaf = torch.ones(2, requires_grad=True)
    dist.all_reduce(leaf)
    dist.reduce(leaf, 0)
    dist.gather(leaf, [torch.zeros(2), torch.zeros(2)] if dist.get_rank() == 0 else None)
    return leaf.tolist(), leaf.is_leaf, leaf.grad_fn


@pytest.mark.ranks(2)
def test_all_to_all_single_length_must_be_divisible(refused: Refused) -> None:
    refused(RuntimeError, lambda: dist.all_to_all_single(torch.zeros(3), torch.zeros(3)), "divide equally")
    refused(RuntimeError, lambda: dist.all_to_all_single(torch.zeros(4), torch.zeros(3)), "divide equally")
    refused(RuntimeError, lambda: dist.all_to_all_single(torch.zeros(()), torch.zeros(())), "scalar")
