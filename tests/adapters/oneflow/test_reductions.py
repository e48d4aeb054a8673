"""oneflow.comm: all_reduce, reduce, reduce_scatter, reduce_scatter_tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import collshim
import collshim.oneflow as flow

if TYPE_CHECKING:
    from tests.adapters.oneflow.conftest import Refused, Run

comm: Any = flow.comm  # what types forbid is tried too


def documented_input() -> torch.Tensor:
    return flow.tensor([[1, 2], [3, 4]]) + flow.env.get_local_rank()


@pytest.mark.parametrize(("size", "wanted"), [(1, [[1, 2], [3, 4]]), (2, [[3, 5], [7, 9]]), (4, [[10, 14], [18, 22]])])
def test_the_documented_all_reduce(run: Run, size: int, wanted: list[list[int]]) -> None:
    def rank() -> Any:
        tensor = documented_input()
        returned = comm.all_reduce(tensor)
        return returned, tensor.tolist()

    assert run(rank, size) == [(None, wanted)] * size


def test_all_reduce_changes_what_the_tensor_is_a_view_of(run: Run) -> None:
    def rank() -> Any:
        base = flow.tensor([[1, 2], [3, 4], [5, 6]]) + 10 * flow.env.get_rank()
        comm.all_reduce(base[1:2])
        return base.tolist()

    assert run(rank, 2) == [[[1, 2], [16, 18], [5, 6]], [[11, 12], [16, 18], [15, 16]]]


@pytest.mark.parametrize(
    ("values", "dtype", "wanted"),
    [
        ([[True, False, False], [True, True, False]], flow.bool, [True, True, False]),
        ([[100, 127, -128], [100, 127, -128]], flow.int8, [-56, -2, 0]),
        ([[1, 0, 3], [2, 1, 4]], flow.uint8, [3, 1, 7]),
        ([[1.0, 0.0, 3.0], [2.0, 1.0, 4.0]], flow.float16, [3.0, 1.0, 7.0]),
        ([[1.0, 0.0, 3.0], [2.0, 1.0, 4.0]], flow.float64, [3.0, 1.0, 7.0]),
    ],
)
def test_all_reduce_of_every_kind_of_dtype(run: Run, values: Any, dtype: torch.dtype, wanted: Any) -> None:
    def rank() -> Any:
        tensor = flow.tensor(values[flow.env.get_rank()], dtype=dtype)
        comm.all_reduce(tensor)
        return tensor.tolist(), tensor.dtype

    assert run(rank, 2) == [(wanted, dtype)] * 2


def test_all_reduce_of_scalars_and_of_no_elements(run: Run) -> None:
    def rank() -> Any:
        scalar, empty = flow.tensor(1.5 + flow.env.get_rank()), flow.zeros(0, 3)
        comm.all_reduce(scalar)
        comm.all_reduce(empty)
        return scalar.item(), tuple(empty.shape)

    assert run(rank, 2) == [(4.0, (0, 3))] * 2


def test_all_reduce_of_a_numpy_array_in_place(run: Run) -> None:
    def rank() -> Any:
        array = np.array([1.0, 2.0]) + flow.env.get_rank()
        comm.all_reduce(array)
        return array.tolist()

    assert run(rank, 2) == [[3.0, 5.0]] * 2


@pytest.mark.parametrize("function", ["all_reduce", "reduce"])
def test_a_leaf_that_requires_a_gradient_is_refused(run: Run, refused: Refused, function: str) -> None:
    def rank() -> Any:
        tensor = flow.ones(2, requires_grad=True)
        arguments = (tensor,) if function == "all_reduce" else (tensor, 0)
        text = refused(RuntimeError, lambda: getattr(comm, function)(*arguments))
        return text, tensor.tolist()

    for text, values in run(rank, 2):
        assert "a leaf Tensor that requires grad is being used in an in-place operation" in text
        assert values == [1.0, 1.0]


def test_all_reduce_is_unseen_by_autograd(run: Run) -> None:
    def rank() -> Any:
        here = flow.env.get_rank()
        weight = flow.ones(2, requires_grad=True)
        tensor = weight * (here + 2)
        comm.all_reduce(tensor)
        (tensor * 3).sum().backward()
        assert weight.grad is not None
        return tensor.tolist(), weight.grad.tolist()

    assert run(rank, 2) == [([5.0, 5.0], [6.0, 6.0]), ([5.0, 5.0], [9.0, 9.0])]


def test_all_reduce_refuses_what_is_no_tensor(run: Run, refused: Refused) -> None:
    def rank() -> str:
        return refused(AssertionError, lambda: comm.all_reduce([1, 2]))

    assert all("tensor is <class 'list'>, should be a tensor" in text for text in run(rank, 2))


@pytest.mark.parametrize("shape", [(3, 2), (5,)])
def test_shapes_that_differ_between_ranks_are_told_on_every_rank(run: Run, shape: tuple[int, ...]) -> None:
    def rank() -> str:
        with pytest.raises(collshim.MismatchError) as caught:
            comm.all_reduce(flow.zeros(2, 3) if flow.env.get_rank() == 0 else flow.zeros(shape))
        return str(caught.value)

    first, second = run(rank, 2)
    assert first == second
    assert "disagree on shape" in first


@pytest.mark.parametrize("dst", [0, 1])
def test_reduce_writes_into_the_tensor_of_dst_alone(run: Run, dst: int) -> None:
    def rank() -> Any:
        base = flow.tensor([[1, 2], [3, 4]]) + flow.env.get_rank()
        returned = comm.reduce(base[0], dst)
        return returned, base.tolist()

    wanted: list[Any] = [(None, [[1, 2], [3, 4]]), (None, [[2, 3], [4, 5]])]
    wanted[dst][1][0] = [3, 5]
    assert run(rank, 2) == wanted


def test_reduce_refuses_a_dst_that_is_no_int(run: Run, refused: Refused) -> None:
    def rank() -> str:
        dst: Any = 0.0
        return refused(AssertionError, lambda: comm.reduce(documented_input(), dst))

    assert all("dst is 0.0" in text for text in run(rank, 2))


def parts(here: int, size: int) -> list[torch.Tensor]:
    return [flow.tensor([[1.0, 2.0], [3.0, 4.0]]) + 100 * other + here for other in range(size)]


def test_reduce_scatter_gives_rank_r_the_sum_of_the_rth_parts(run: Run, size: int) -> None:
    def rank() -> Any:
        here = flow.env.get_rank()
        output, input_list = flow.zeros(2, 2), parts(here, size)
        returned = comm.reduce_scatter(output, input_list)
        unchanged = all(torch.equal(a, b) for a, b in zip(input_list, parts(here, size), strict=True))
        return returned, output.tolist(), unchanged

    def wanted(here: int) -> Any:
        return torch.stack([parts(other, size)[here] for other in range(size)]).sum(0).tolist()

    assert run(rank, size) == [(None, wanted(here), True) for here in range(size)]


def test_reduce_scatter_rebinds_its_output(run: Run) -> None:
    def rank() -> Any:
        base = flow.zeros(2, 2, dtype=flow.int64)
        output = base[0]
        comm.reduce_scatter(output, [flow.tensor([1.5, 2.0]), flow.tensor([3.5, 4.0])])
        return output.tolist(), output.dtype, base.tolist()

    first, second = run(rank, 2)
    assert first == ([3.0, 4.0], torch.float32, [[0, 0], [0, 0]])
    assert second == ([7.0, 8.0], torch.float32, [[0, 0], [0, 0]])


def test_reduce_scatter_combines_bool_by_or(run: Run) -> None:
    def rank() -> Any:
        output = flow.zeros(2, dtype=flow.bool)
        comm.reduce_scatter(output, [flow.tensor([False, flow.env.get_rank() == 0])] * 2)
        return output.tolist()

    assert run(rank, 2) == [[False, True]] * 2


def test_reduce_scatter_writes_into_a_numpy_output(run: Run) -> None:
    def rank() -> Any:
        output = np.zeros(1)
        comm.reduce_scatter(output, [np.array([1.0]), np.array([2.0])])
        return output.tolist()

    assert run(rank, 2) == [[2.0], [4.0]]


def test_reduce_scatter_refuses_wrong_lists_and_a_wrong_output(run: Run, refused: Refused) -> None:
    def rank() -> list[str]:
        good = [flow.zeros(2), flow.zeros(2)]
        pair: Any = tuple(good)
        return [
            refused(AssertionError, lambda: comm.reduce_scatter(flow.zeros(2), pair)),
            refused(AssertionError, lambda: comm.reduce_scatter(flow.zeros(2), good[:1])),
            refused(AssertionError, lambda: comm.reduce_scatter(flow.zeros(3), good)),
            refused(AssertionError, lambda: comm.reduce_scatter([0.0], good)),
            refused(AttributeError, lambda: comm.reduce_scatter(flow.zeros(2), [good[0], None])),
            refused(TypeError, lambda: comm.reduce_scatter(flow.zeros(2), [good[0], flow.tensor([1, 2])])),
        ]

    for texts in run(rank, 2):
        assert "input_list is <class 'tuple'>" in texts[0]
        assert "length of input_list is 1" in texts[1]
        assert "shape of output is (3,)" in texts[2]
        assert "output is <class 'list'>" in texts[3]


@pytest.mark.parametrize("form", [(6,), (3, 2), (1, 6), (1, 2, 3)])
def test_reduce_scatter_tensor_fills_every_shape_in_row_major_order(run: Run, size: int, form: tuple[int, ...]) -> None:
    def rank() -> Any:
        output = flow.zeros(*form, dtype=flow.int64)
        input_tensor = flow.arange(1, 6 * size + 1).reshape(2 * size, 3)
        returned = comm.reduce_scatter_tensor(output, input_tensor)
        return returned, tuple(output.shape), output.flatten().tolist()

    def wanted(here: int) -> list[int]:
        return [size * number for number in range(6 * here + 1, 6 * here + 7)]

    assert run(rank, size) == [(None, form, wanted(here)) for here in range(size)]


def test_reduce_scatter_tensor_writes_into_a_view(run: Run) -> None:
    def rank() -> Any:
        base = flow.zeros(2, 2)
        comm.reduce_scatter_tensor(base[1], flow.ones(4))
        return base.tolist()

    assert run(rank, 2) == [[[0.0, 0.0], [2.0, 2.0]]] * 2


def test_reduce_scatter_tensor_refuses_what_does_not_fit(run: Run, refused: Refused) -> None:
    def rank() -> list[str]:
        return [
            refused(RuntimeError, lambda: comm.reduce_scatter_tensor(flow.zeros(3), flow.zeros(4))),
            refused(RuntimeError, lambda: comm.reduce_scatter_tensor(flow.zeros(2), flow.arange(4))),
            refused(AttributeError, lambda: comm.reduce_scatter_tensor(flow.zeros(2), [0.0] * 4)),
        ]

    for texts in run(rank, 2):
        assert "output tensor size must be equal to world_size times input tensor size" in texts[0]
        assert "output tensor must have the same type as input tensor" in texts[1]
        assert "'list' object has no attribute 'is_local'" in texts[2]
