"""comm_func: all_to_all_with_output_shape, all_to_all_single_with_output_shape, all_to_all_v_c."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

import collshim
from collshim.mindspore.communication import comm_func, create_group, get_rank

if TYPE_CHECKING:
    from tests.adapters.mindspore.conftest import Refused, Run

comm: Any = comm_func  # what types forbid is tried too


def exchanged(async_op: bool, gradient: bool = False) -> Any:
    """Two ranks with parts of four shapes; shapes are told as tuples and as tensors."""
    if get_rank() == 0:
        parts, shapes = [torch.tensor(1.0), torch.tensor([[2.0, 3.0], [4.0, 5.0]])], [(), torch.zeros(2)]
    else:
        parts, shapes = [torch.tensor([2.0, 2.0]), torch.tensor([4.0, 5.0, 6.0, 7.0])], [torch.zeros(2, 2), (4,)]
    parts = [part.requires_grad_(gradient) for part in parts]
    outputs, handle = comm.all_to_all_with_output_shape(shapes, parts, async_op=async_op)
    assert isinstance(handle, comm_func.CommHandle) if async_op else handle is None
    if handle:
        handle.wait()
    return parts, outputs


@pytest.mark.parametrize("async_op", [False, True])
def test_parts_of_unequal_shapes_arrive_as_a_tuple_in_rank_order(run: Run, async_op: bool) -> None:
    def rank() -> Any:
        outputs = exchanged(async_op)[1]
        return type(outputs), [output.tolist() for output in outputs]

    assert run(rank, 2) == [
        (tuple, [1.0, [2.0, 2.0]]),
        (tuple, [[[2.0, 3.0], [4.0, 5.0]], [4.0, 5.0, 6.0, 7.0]]),
    ]


@pytest.mark.parametrize("async_op", [False, True])
def test_the_gradient_of_a_part_comes_back_from_where_it_went(run: Run, async_op: bool) -> None:
    def rank() -> Any:
        parts, outputs = exchanged(async_op, gradient=True)
        torch.stack([output.sum() * (get_rank() + 1) for output in outputs]).sum().backward()
        return [part.grad.tolist() for part in parts]

    assert run(rank, 2) == [[1.0, [[2.0, 2.0], [2.0, 2.0]]], [[1.0, 1.0], [2.0, 2.0, 2.0, 2.0]]]


def test_numpy_parts_give_numpy_outputs(run: Run, size: int) -> None:
    def rank() -> Any:
        parts = [np.array([10 * get_rank() + other]) for other in range(size)]
        outputs, _ = comm.all_to_all_with_output_shape(parts, parts)
        assert all(isinstance(output, np.ndarray) for output in outputs)
        return [int(output[0]) for output in outputs]

    assert run(rank, size) == [[10 * other + here for other in range(size)] for here in range(size)]


def test_wrong_lists_are_refused(run: Run, refused: Refused) -> None:
    x = torch.zeros(1)

    def rank() -> list[str]:
        return [
            refused(TypeError, lambda: comm.all_to_all_with_output_shape([(1,)], x)),
            refused(TypeError, lambda: comm.all_to_all_with_output_shape(x, [x, x])),
            refused(TypeError, lambda: comm.all_to_all_with_output_shape([(1,), (1,)], [x, x.int()])),
            refused(TypeError, lambda: comm.all_to_all_with_output_shape([(1,)] * 3, [x] * 3)),
            refused(TypeError, lambda: comm.all_to_all_with_output_shape([(1,), "x"], [x, x])),
            refused(TypeError, lambda: comm.all_to_all_with_output_shape([(1,), (1,)], [x, 1])),
            refused(TypeError, lambda: comm.all_to_all_with_output_shape([(1,), (1,)], [x, x], 1)),
        ]

    for texts in run(rank, 2):
        assert "Expected list or tuple, but got <class 'torch.Tensor'>." in texts[0]
        assert "Expected list or tuple, but got <class 'torch.Tensor'>." in texts[1]
        assert "all_to_all input dtype must be the same, but got Float32 and Int32." in texts[2]
        assert "tensor len must be equal to group rank size, but got 3" in texts[3]


@pytest.mark.parametrize("gradient", [False, True])
def test_a_part_of_another_shape_than_awaited_is_told(run: Run, gradient: bool) -> None:
    def rank() -> str:
        parts = [torch.zeros(2).requires_grad_(gradient)] * 2
        with pytest.raises(collshim.MismatchError) as caught:
            comm.all_to_all_with_output_shape([(3,), (3,)], parts)
        return str(caught.value)

    assert all("(2,)" in text and "(3,)" in text for text in run(rank, 2))


@pytest.mark.parametrize("async_op", [False, True])
def test_a_single_tensor_is_divided_equally_along_its_first_dimension(run: Run, size: int, async_op: bool) -> None:
    def rank() -> Any:
        tensor = torch.arange(2.0 * size).reshape(size, 2) + 100 * get_rank()
        output, handle = comm.all_to_all_single_with_output_shape((size, 2), tensor, async_op=async_op)
        if handle:
            handle.wait()
        return output.tolist()

    assert run(rank, size) == [
        [[100.0 * other + 2 * here, 100.0 * other + 2 * here + 1] for other in range(size)] for here in range(size)
    ]


@pytest.mark.parametrize("gradient", [False, True])
def test_a_single_tensor_is_divided_by_the_split_sizes(run: Run, gradient: bool) -> None:
    def rank() -> Any:
        if get_rank() == 0:
            tensor = torch.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [6.0, 7.0, 8.0]], requires_grad=gradient)
            output, handle = comm.all_to_all_single_with_output_shape((3, 3), tensor, [2, 1], [2, 1])
        else:
            tensor = torch.tensor([[9.0, 10.0, 11.0], [12.0, 13.0, 14.0]], requires_grad=gradient)
            shape = torch.zeros(2, 3)
            output, handle = comm.all_to_all_single_with_output_shape(shape, tensor, [1, 1], (1, 1))
        if gradient:
            (output * (get_rank() + 1)).sum().backward()
            assert tensor.grad is not None
            return tensor.grad[:, 0].tolist()
        return output.tolist(), handle

    wanted: list[Any] = [
        ([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0], [9.0, 10.0, 11.0]], None),
        ([[6.0, 7.0, 8.0], [12.0, 13.0, 14.0]], None),
    ]
    assert run(rank, 2) == ([[1.0, 1.0, 2.0], [1.0, 2.0]] if gradient else wanted)


def test_a_rank_may_send_and_receive_nothing(run: Run) -> None:
    def rank() -> Any:
        sent = [0, 2] if get_rank() == 0 else [0, 0]
        received = [0, 0] if get_rank() == 0 else [2, 0]
        tensor = torch.arange(2.0 * sum(sent)).reshape(sum(sent), 2)
        return comm.all_to_all_single_with_output_shape((sum(received), 2), tensor, received, sent)[0].tolist()

    assert run(rank, 2) == [[], [[0.0, 1.0], [2.0, 3.0]]]


def test_wrong_sizes_are_refused(run: Run, refused: Refused) -> None:
    single = comm.all_to_all_single_with_output_shape
    x = torch.zeros(4)

    def rank() -> list[str]:
        return [
            refused(ValueError, lambda: single((3,), torch.zeros(3))),
            refused(TypeError, lambda: single([4], x)),
            refused(ValueError, lambda: single((4,), x, input_split_sizes=[1, 2])),
            refused(ValueError, lambda: single((4,), x, output_split_sizes=[4])),
            refused(ValueError, lambda: single((), torch.tensor(1.0))),
            refused(TypeError, lambda: single((4,), [1.0])),
        ]

    for texts in run(rank, 2):
        assert "input shape at dim 0 must be divided by world_size, but got 3 and 2." in texts[0]
        assert "unhashable type: 'list'" in texts[1]
        assert "add up to 4, but got [1, 2]" in texts[2]
        assert "must be 2 counts" in texts[3]


@pytest.mark.parametrize("async_op", [False, True])
def test_all_to_all_v_c_sends_by_the_matrix_and_writes_its_output(run: Run, async_op: bool) -> None:
    def rank() -> Any:
        given = torch.arange(3.0) + 10 * get_rank()
        output = torch.zeros(3, 1)
        returned = comm.all_to_all_v_c(output, given, [1, 2, 2, 1], async_op=async_op)
        assert isinstance(returned, comm_func.CommHandle) if async_op else returned is None
        if returned:
            returned.wait()
        return output.flatten().tolist()

    assert run(rank, 2) == [[0.0, 10.0, 11.0], [1.0, 2.0, 12.0]]


def test_all_to_all_v_c_refuses_counts_that_do_not_fit(run: Run, refused: Refused) -> None:
    def rank() -> list[str]:
        x = torch.zeros(3)
        return [
            refused(ValueError, lambda: comm.all_to_all_v_c(x, x, [1, 2])),
            refused(ValueError, lambda: comm.all_to_all_v_c(x, x, [1, 1, 1, 1])),
            refused(ValueError, lambda: comm.all_to_all_v_c(x, x, [4, -1, -1, 4])),
            refused(TypeError, lambda: comm.all_to_all_v_c(x, x, [1.0, 2, 2, 1])),
            refused(TypeError, lambda: comm.all_to_all_v_c(x, x, 3)),
            refused(ValueError, lambda: comm.all_to_all_v_c(torch.zeros(3, 2)[:, 0], x, [1, 2, 2, 1])),
        ]

    assert all(texts for texts in run(rank, 2))


def test_a_subgroup_by_name(run: Run) -> None:
    def rank() -> Any:
        here = get_rank()
        if here not in (1, 3):
            return None
        create_group("g31", [3, 1])
        parts = [torch.tensor([10 * here + other]) for other in range(2)]
        outputs, _ = comm.all_to_all_with_output_shape([(1,), (1,)], parts, "g31")
        return [int(output) for output in outputs]

    assert run(rank, 4) == [None, [31, 11], None, [30, 10]]
