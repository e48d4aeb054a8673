"""What torch documents and gloo refuses works; what gloo corrupts is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.distributed import _make_nccl_premul_sum

import collshim.torch.distributed as dist

if TYPE_CHECKING:
    from tests.adapters.torch.conftest import Refused, Run

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
NARROW = (*INTEGERS, "float8_e4m3fn", "float8_e5m2", "bfloat16", "float16")
Op = dist.ReduceOp


@pytest.mark.parametrize("name", [*NARROW, "bool", "complex64", "complex128"])
def test_every_dtype_is_summed_and_moved(run: Run, name: str) -> None:
    dtype = getattr(torch, name)

    def rank() -> Any:
        mine = torch.tensor([1, dist.get_rank()]).to(dtype)
        gathered = [torch.zeros(2).to(dtype) for _ in range(2)]
        dist.gather(mine, gathered if dist.get_rank() == 0 else None, 0)
        dist.broadcast(moved := mine.clone(), 1)
        dist.all_reduce(mine)
        return [tensor.to(torch.complex64).real.tolist() for tensor in (mine, moved, *gathered)]

    total = [1.0, 1.0] if name == "bool" else [2.0, 1.0]
    assert run(rank, 2) == [[total, [1, 1], [1, 0], [1, 1]], [total, [1, 1], [0, 0], [0, 0]]]


@pytest.mark.parametrize("name", INTEGERS)
def test_avg_of_integers_is_rounded_towards_zero(run: Run, name: str) -> None:
    def rank() -> Any:
        tensor = torch.tensor([1 + 2 * dist.get_rank(), 2 + dist.get_rank()], dtype=getattr(torch, name))
        dist.all_reduce(tensor, Op.AVG)
        return tensor.tolist()

    assert run(rank, 2) == [[2, 2]] * 2


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        pytest.param(Op.SUM, [3, 5], id="sum"),
        pytest.param(Op.AVG, [1.5, 2.5], id="avg"),
        pytest.param(Op.PRODUCT, [2, 6], id="product"),
        pytest.param(Op.MIN, [1, 2], id="min"),
        pytest.param(Op.MAX, [2, 3], id="max"),
        pytest.param(Op(Op.MAX), [2, 3], id="an object of max"),
        pytest.param(_make_nccl_premul_sum(2.0), [6, 10], id="sum after a product with a number"),
        pytest.param(_make_nccl_premul_sum(torch.tensor(2.0)), [6, 10], id="sum after a product with a tensor"),
    ],
)
def test_every_op_and_both_kinds_of_its_object(run: Run, op: Any, expected: list[float]) -> None:
    def rank() -> Any:
        mine = torch.arange(2.0) + 1 + dist.get_rank()
        scattered = torch.zeros(2)
        dist.reduce_scatter(scattered, [mine, mine], op)
        dist.all_reduce(mine, op)
        return scattered.tolist(), mine.tolist()

    assert run(rank, 2) == [(expected, expected)] * 2


@pytest.mark.parametrize(("op", "expected"), [(Op.BAND, 8), (Op.BOR, 14), (Op.BXOR, 6)], ids=str)
def test_bits_are_combined(run: Run, op: Any, expected: int) -> None:
    def rank() -> int:
        tensor = torch.tensor([12, 10][dist.get_rank()])
        dist.all_reduce(tensor, op)
        return int(tensor)

    assert run(rank, 2) == [expected] * 2


def test_all_gather_of_unequal_sizes(run: Run) -> None:
    def rank() -> Any:
        gathered = [torch.zeros(length) for length in (1, 2, 0)]
        dist.all_gather(gathered, torch.full(((1, 2, 0)[dist.get_rank()],), 1.0 + dist.get_rank()))
        return [tensor.tolist() for tensor in gathered]

    assert run(rank, 3) == [[[1.0], [2.0, 2.0], []]] * 3


def test_0d_tensors(run: Run) -> None:
    def rank() -> Any:
        mine, joined, part = torch.tensor(1.0 + dist.get_rank()), torch.zeros(2), torch.tensor(0.0)
        dist.all_gather_single(joined, mine)
        dist.reduce_scatter_single(part, joined)
        dist.all_reduce(mine)
        return joined.tolist(), part.item(), mine.item()

    assert run(rank, 2) == [([1.0, 2.0], 2.0, 3.0), ([1.0, 2.0], 4.0, 3.0)]


def test_a_part_of_the_output_may_be_the_input(run: Run) -> None:
    def rank() -> Any:
        mine = dist.get_rank()
        whole = torch.zeros(2, 2)
        whole[mine] = 1.0 + mine
        dist.all_gather_single(whole, whole[mine])
        gathered = whole.tolist()
        dist.reduce_scatter_single(whole[mine], whole)
        return gathered, whole[mine].tolist()

    assert run(rank, 2) == [([[1, 1], [2, 2]], [2, 2]), ([[1, 1], [2, 2]], [4, 4])]


def test_layouts_that_are_not_contiguous(run: Run) -> None:
    def rank() -> Any:
        turned = (torch.arange(4.0).view(2, 2) + dist.get_rank()).t()
        columns = torch.zeros(2, 2, 2).transpose(0, 2)
        dist.all_gather_single(columns, turned)
        exchanged = torch.zeros(4)[::2]
        dist.all_to_all_single(exchanged, turned[1])
        return columns.tolist(), exchanged.tolist()

    both = [[[0.0, 2.0], [1.0, 3.0]], [[1.0, 3.0], [2.0, 4.0]]]
    assert run(rank, 2) == [(both, [1.0, 2.0]), (both, [3.0, 4.0])]


def test_complex_tensors_may_come_with_pairs_of_reals(run: Run) -> None:
    def rank() -> Any:
        gathered = [torch.zeros(1, 2) for _ in range(2)]
        dist.all_gather(gathered, torch.tensor([1 + dist.get_rank() * 1j], dtype=torch.complex64))
        return [tensor.tolist() for tensor in gathered]

    assert run(rank, 2) == [[[[1.0, 0.0]], [[1.0, 1.0]]]] * 2


def test_gradients_do_not_flow_and_leaves_are_written(run: Run) -> None:
    def rank() -> Any:
        leaf = torch.ones(2, requires_grad=True)
        dist.all_reduce(leaf)
        dist.reduce(leaf, 0)
        dist.gather(leaf, [torch.zeros(2), torch.zeros(2)] if dist.get_rank() == 0 else None)
        return leaf.tolist(), leaf.is_leaf, leaf.grad_fn

    assert run(rank, 2) == [([4.0, 4.0], True, None), ([2.0, 2.0], True, None)]


def test_all_to_all_single_of_a_length_that_the_ranks_do_not_divide_is_an_error(run: Run, refused: Refused) -> None:
    def rank() -> None:
        refused(RuntimeError, lambda: dist.all_to_all_single(torch.zeros(3), torch.zeros(3)), "divide equally")
        refused(RuntimeError, lambda: dist.all_to_all_single(torch.zeros(4), torch.zeros(3)), "divide equally")
        refused(RuntimeError, lambda: dist.all_to_all_single(torch.zeros(()), torch.zeros(())), "scalar")

    run(rank, 2)


@pytest.mark.parametrize(
    "differing",
    [
        lambda rank: dist.all_reduce(torch.zeros(3 + rank)),
        lambda rank: dist.all_reduce(torch.zeros(3, dtype=(torch.float32, torch.int32)[rank])),
        lambda rank: dist.all_reduce(torch.zeros(3), (Op.SUM, Op.MAX)[rank]),
        lambda rank: dist.broadcast(torch.zeros(3), rank),
        lambda rank: dist.broadcast(torch.zeros(3 + rank), 0),
        lambda rank: dist.all_reduce(torch.zeros(3)) if rank else dist.broadcast(torch.zeros(3), 0),
        lambda rank: dist.all_to_all([torch.zeros(2), torch.zeros(2)], [torch.zeros(1)] * 2),
        lambda rank: dist.send(torch.zeros(3), 1) if rank == 0 else dist.recv(torch.zeros(2), 0),
    ],
)
def test_ranks_whose_calls_disagree_are_told(run: Run, differing: Any) -> None:
    def rank() -> str:
        try:
            differing(dist.get_rank())
            dist.barrier()  # a send is complete before its receiver has looked
        except RuntimeError as error:
            return type(error).__name__
        return "nothing"

    found = run(rank, 2)
    assert "MismatchError" in found
    assert set(found) <= {"MismatchError", "PeerError", "BrokenCommunicatorError"}
