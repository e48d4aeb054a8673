"""oneflow.comm.all_gather_into_tensor: the documented example, and every output form."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import collshim.oneflow as flow

if TYPE_CHECKING:
    from tests.adapters.oneflow.conftest import Refused, Run

comm: Any = flow.comm  # what types forbid is tried too


def documented_input() -> torch.Tensor:
    return flow.tensor([[1, 2, 3], [4, 5, 6]], dtype=flow.int64) + flow.env.get_rank() * 6


def test_the_documented_concatenated_form(run: Run) -> None:
    def rank() -> tuple[object, torch.Tensor]:
        tensor_out = flow.zeros(4, 3, dtype=flow.int64)
        returned = comm.all_gather_into_tensor(tensor_out, documented_input())
        return returned, tensor_out

    for returned, tensor_out in run(rank, 2):
        assert returned is None
        assert tensor_out.tolist() == [[1, 2, 3], [4, 5, 6], [7, 8, 9], [10, 11, 12]]
        assert tensor_out.dtype is torch.int64


def test_the_documented_stacked_form(run: Run) -> None:
    def rank() -> Any:
        tensor_out = flow.zeros(2, 3, 2, dtype=flow.int64)
        comm.all_gather_into_tensor(tensor_out, documented_input())
        return tensor_out.tolist()

    assert run(rank, 2) == [[[[1, 2], [3, 4], [5, 6]], [[7, 8], [9, 10], [11, 12]]]] * 2


@pytest.mark.parametrize("form", [(6,), (2, 3), (3, 2), (1, 6), (6, 1, 1), (3, 1, 2)])
def test_every_shape_with_enough_elements_is_filled_in_row_major_order(
    run: Run, size: int, form: tuple[int, ...]
) -> None:
    def rank() -> tuple[tuple[int, ...], list[int]]:
        tensor_out = flow.zeros(size, *form, dtype=flow.int64)
        comm.all_gather_into_tensor(tensor_out, documented_input())
        return tuple(tensor_out.shape), tensor_out.flatten().tolist()

    assert run(rank, size) == [((size, *form), list(range(1, 6 * size + 1)))] * size


def test_an_output_that_is_a_view_changes_what_it_is_a_view_of(run: Run) -> None:
    def rank() -> Any:
        base = flow.zeros(3, 4, dtype=flow.int64)
        comm.all_gather_into_tensor(base[1], flow.tensor([1, 2]) + 10 * flow.env.get_rank())
        return base.tolist()

    assert run(rank, 2) == [[[0] * 4, [1, 2, 11, 12], [0] * 4]] * 2


def test_an_output_and_an_input_that_are_not_contiguous(run: Run) -> None:
    def rank() -> Any:
        tensor_out = flow.zeros(3, 4, dtype=flow.int64).T
        comm.all_gather_into_tensor(tensor_out, documented_input().reshape(3, 2).T)
        return tensor_out.tolist()

    assert run(rank, 2) == [[[1, 3, 5], [2, 4, 6], [7, 9, 11], [8, 10, 12]]] * 2


def test_zero_dimensional_inputs(run: Run, size: int) -> None:
    def rank() -> list[int]:
        tensor_out = flow.zeros(size, dtype=flow.int64)
        comm.all_gather_into_tensor(tensor_out, flow.tensor(flow.env.get_rank()))
        found: list[int] = tensor_out.tolist()
        return found

    assert run(rank, size) == [list(range(size))] * size


def test_float16_on_cpu(run: Run) -> None:
    def rank() -> Any:
        tensor_out = flow.zeros(4, dtype=flow.float16)
        comm.all_gather_into_tensor(tensor_out, flow.tensor([flow.env.get_rank() + 1.5, 2.0], dtype=flow.float16))
        return tensor_out.tolist()

    assert run(rank, 2) == [[1.5, 2.0, 2.5, 2.0]] * 2


def test_a_numpy_output_is_written_into(run: Run) -> None:
    def rank() -> Any:
        output = np.zeros((2, 2), dtype=np.float32)
        comm.all_gather_into_tensor(output, np.full(2, flow.env.get_rank(), dtype=np.float32))
        return output.tolist()

    assert run(rank, 2) == [[[0.0, 0.0], [1.0, 1.0]]] * 2


def test_a_leaf_output_stays_a_leaf_and_the_call_leaves_no_gradient_path(run: Run) -> None:
    def rank() -> tuple[bool, bool, Any]:
        tensor_out = flow.zeros(4, requires_grad=True)
        comm.all_gather_into_tensor(tensor_out, flow.ones(2, requires_grad=True))
        return tensor_out.is_leaf, tensor_out.requires_grad, tensor_out.tolist()

    assert run(rank, 2) == [(True, True, [1.0] * 4)] * 2


def test_a_wrong_number_of_elements_is_refused(run: Run, refused: Refused) -> None:
    def rank() -> str:
        return refused(
            RuntimeError,
            lambda: comm.all_gather_into_tensor(flow.zeros(5, dtype=flow.int64), documented_input()),
        )

    for text in run(rank, 2):
        assert "output tensor size must be equal to world_size times input tensor size" in text
        assert "5 elements (5,)" in text


def test_another_dtype_is_refused(run: Run, refused: Refused) -> None:
    def rank() -> str:
        return refused(RuntimeError, lambda: comm.all_gather_into_tensor(flow.zeros(4, 3), documented_input()))

    assert all("output tensor must have the same type as input tensor" in text for text in run(rank, 2))


@pytest.mark.parametrize("which", ["output", "input"])
def test_a_list_is_refused_as_an_attribute_error(run: Run, refused: Refused, which: str) -> None:
    def rank() -> str:
        tensors: list[Any] = [flow.zeros(4), flow.zeros(2)]
        tensors[which == "input"] = [1.0]
        return refused(AttributeError, lambda: comm.all_gather_into_tensor(*tensors))

    assert all("'list' object has no attribute 'is_local'" in text for text in run(rank, 2))


def test_an_output_that_cannot_be_written_is_refused(run: Run, refused: Refused) -> None:
    def rank() -> list[str]:
        read_only = np.zeros(4, dtype=np.float32)
        read_only.flags.writeable = False
        outputs = [read_only, flow.zeros(1).expand(4)]
        return [refused(ValueError, partial(comm.all_gather_into_tensor, out, flow.ones(2))) for out in outputs]

    for here, (read_only, expanded) in enumerate(run(rank, 2)):
        assert read_only.startswith("all_gather_into_tensor: output_tensor is a read-only NumPy array")
        assert "output_tensor is expanded" in expanded
        assert expanded.endswith(f"(rank {here} of 2)")


def test_a_refused_rank_may_call_again(run: Run, refused: Refused) -> None:
    def rank() -> Any:
        tensor_out = flow.zeros(4)
        if flow.env.get_rank() == 0:
            refused(RuntimeError, lambda: comm.all_gather_into_tensor(flow.zeros(3), flow.ones(2)))
        comm.all_gather_into_tensor(tensor_out, flow.ones(2))
        return tensor_out.tolist()

    assert run(rank, 2) == [[1.0] * 4] * 2
