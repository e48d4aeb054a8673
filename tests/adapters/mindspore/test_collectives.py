"""comm_func: all_reduce, reduce_scatter_tensor, barrier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from collshim.mindspore.communication import comm_func, get_rank

if TYPE_CHECKING:
    from tests.adapters.mindspore.conftest import Refused, Run

comm: Any = comm_func  # what types forbid is tried too


def values() -> torch.Tensor:
    return torch.arange(6.0).reshape(2, 3) + 10 * get_rank()


@pytest.mark.parametrize(
    ("op", "wanted"),
    [("sum", [4.0, 6.0]), ("prod", [3.0, 8.0]), ("min", [1.0, 2.0]), ("max", [3.0, 4.0])],
)
@pytest.mark.parametrize("async_op", [False, True])
def test_all_reduce_gives_a_new_tensor(run: Run, op: str, wanted: list[float], async_op: bool) -> None:
    def rank() -> Any:
        tensor = torch.tensor([1.0, 2.0]) + 2 * get_rank()
        output, handle = comm.all_reduce(tensor, op, async_op=async_op)
        assert isinstance(handle, comm_func.CommHandle) if async_op else handle is None
        if handle:
            handle.wait()
        return output.tolist(), (tensor - 2 * get_rank()).tolist()

    assert run(rank, 2) == [(wanted, [1.0, 2.0])] * 2


def test_all_reduce_sums_by_default(run: Run, size: int) -> None:
    total = sum(range(1, size + 1))
    assert run(lambda: comm.all_reduce(np.full(2, get_rank() + 1))[0].tolist(), size) == [[total, total]] * size


def test_the_gradient_of_a_sum_is_the_sum_of_all_gradients(run: Run, size: int) -> None:
    def rank() -> Any:
        tensor = values().requires_grad_()
        output, _ = comm.all_reduce(tensor)
        (output * (get_rank() + 1)).sum().backward()
        assert tensor.grad is not None
        return tensor.grad.tolist()

    total = float(sum(range(1, size + 1)))
    assert run(rank, size) == [[[total] * 3] * 2] * size


def test_a_rank_whose_input_requires_no_gradient_joins_the_backward(run: Run) -> None:
    def rank() -> Any:
        tensor = values().requires_grad_(get_rank() == 0)
        output, _ = comm.all_reduce(tensor)
        (output * (get_rank() + 1)).sum().backward()
        return None if tensor.grad is None else tensor.grad.tolist()

    assert run(rank, 2) == [[[3.0] * 3] * 2, None]


@pytest.mark.parametrize("op", ["foo", "avg", "band"])
def test_all_reduce_refuses_other_ops_as_type_errors(run: Run, refused: Refused, op: str) -> None:
    texts = run(lambda: refused(TypeError, lambda: comm.all_reduce(values(), op)), 2)
    assert all("For all_reduce, the input op value must be one of sum, prod, min, max" in text for text in texts)


def test_all_reduce_refuses_other_types(run: Run, refused: Refused) -> None:
    def rank() -> list[str]:
        return [
            refused(TypeError, lambda: comm.all_reduce(1)),
            refused(TypeError, lambda: comm.all_reduce(values(), 1)),
            refused(TypeError, lambda: comm.all_reduce(values(), group=None)),
        ]

    for texts in run(rank, 2):
        assert "For all_reduce, the input tensor must be tensor" in texts[0]
        assert "For all_reduce, the input op type must be str" in texts[1]
        assert "must be type of string, but got 'group' type : <class 'NoneType'>" in texts[2]


@pytest.mark.parametrize("async_op", [False, True])
def test_reduce_scatter_tensor_gives_rank_r_the_rth_part(run: Run, size: int, async_op: bool) -> None:
    def rank() -> Any:
        tensor = torch.arange(2.0 * size * 3).reshape(2 * size, 3) + get_rank()
        output, handle = comm.reduce_scatter_tensor(tensor, async_op=async_op)
        assert isinstance(handle, comm_func.CommHandle) if async_op else handle is None
        if handle:
            handle.wait()
        return output.tolist()

    whole = torch.arange(2.0 * size * 3).reshape(size, 2, 3) * size + sum(range(size))
    assert run(rank, size) == [whole[here].tolist() for here in range(size)]


def test_reduce_scatter_tensor_of_numpy_arrays_with_another_op(run: Run) -> None:
    def rank() -> Any:
        output, _ = comm.reduce_scatter_tensor(np.arange(4) * (1 - 2 * get_rank()), "max")
        return type(output), output.tolist()

    assert run(rank, 2) == [(np.ndarray, [0, 1]), (np.ndarray, [2, 3])]


def test_the_gradient_of_reduce_scatter_tensor_is_gathered(run: Run) -> None:
    def rank() -> Any:
        tensor = torch.ones(4).requires_grad_()
        output, _ = comm.reduce_scatter_tensor(tensor)
        (output * (get_rank() + 1)).sum().backward()
        assert tensor.grad is not None
        return tensor.grad.tolist()

    assert run(rank, 2) == [[1.0, 1.0, 2.0, 2.0]] * 2


@pytest.mark.parametrize("shape", [(3, 2), ()])
def test_a_first_dimension_that_cannot_be_divided_is_refused(
    run: Run, refused: Refused, shape: tuple[int, ...]
) -> None:
    def rank() -> list[str]:
        return [
            refused(ValueError, lambda: comm.reduce_scatter_tensor(torch.zeros(shape))),
            refused(ValueError, lambda: comm.scatter_tensor(torch.zeros(shape))),
        ]

    length = shape[0] if shape else 1
    wanted = (
        "the first dimension for 'input_shape' must be divided by 'rank_size', "
        f"but got input_shape[0]: {length}, rank_size: 2"
    )
    assert all(wanted in text for texts in run(rank, 2) for text in texts)


def test_reduce_scatter_tensor_refuses_what_is_no_tensor_and_an_unknown_op(run: Run, refused: Refused) -> None:
    def rank() -> tuple[str, str]:
        first = refused(TypeError, lambda: comm.reduce_scatter_tensor(1))
        return first, refused(ValueError, lambda: comm.reduce_scatter_tensor(torch.zeros(4), "foo"))

    for no_tensor, no_op in run(rank, 2):
        assert "For reduce_scatter_tensor, the input tensor must be tensor" in no_tensor
        assert "'foo'" in no_op


def test_no_rank_leaves_a_barrier_before_all_have_come(run: Run, size: int) -> None:
    came: list[int] = []

    def rank() -> Any:
        came.append(get_rank())
        return comm.barrier(), len(came)

    assert run(rank, size) == [(None, size)] * size


def test_barrier_refuses_a_group_that_is_no_string(run: Run, refused: Refused) -> None:
    texts = run(lambda: refused(TypeError, lambda: comm.barrier(group=1)), 2)
    assert all("group must be type of string, but got <class 'int'>" in text for text in texts)
